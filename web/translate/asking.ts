// Ask while the reader types: only the answer to the latest question is shown.

/**
 * Returns a function that asks a question after `wait` milliseconds, unless it is called again meanwhile; a question
 * that is under way is then aborted, and its answer or error is not shown. Returns null asks nothing
 */
export function asksLatest<Question, Answer>(
  ask: (question: Question, signal: AbortSignal) => Promise<Answer>,
  show: (answer: Answer) => void,
  fail: (error: unknown) => void,
  wait: number,
): (question: Question | null) => void {
  let current = new AbortController();
  return (question) => {
    current.abort();
    const { signal } = (current = new AbortController());
    if (question === null) return;
    setTimeout(async () => {
      if (signal.aborted) return;
      try {
        const answer = await ask(question, signal);
        if (!signal.aborted) show(answer);
      } catch (error) {
        if (!signal.aborted) fail(error);
      }
    }, wait);
  };
}
