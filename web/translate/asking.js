// Ask while the reader types: only the answer to the latest question is shown.

/**
 * Returns a function that asks a question after `wait` milliseconds, unless it is called again meanwhile; a question
 * that is under way is then aborted, and its answer or error is not shown.
 * @template Question
 * @template Answer
 * @param {(question: Question, signal: AbortSignal) => Promise<Answer>} ask
 * @param {(answer: Answer) => void} show
 * @param {(error: unknown) => void} fail
 * @param {number} wait
 * @returns {(question: Question | null) => void} null asks nothing
 */
export function asksLatest(ask, show, fail, wait) {
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
