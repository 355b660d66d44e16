// Requests while the reader types: only the answer to the latest question is shown.

/**
 * Returns a function that asks a question after `wait` milliseconds, unless it is called again before then. A new call
 * also aborts a pending question, whose answer or error is not shown. The question null cancels without asking
 * anything.
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
