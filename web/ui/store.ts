// The state of a view in one place. A drawing is a function of the state; it is redrawn when a part that it reads is set.

/** Gets the state, and which of its parts have been set. */
export type Listener<State> = (state: Readonly<State>, changed: ReadonlySet<keyof State>) => void;

export class Store<State extends object> {
  #state: Readonly<State>;
  #listeners: Set<{ keys: readonly (keyof State)[]; listener: Listener<State> }> = new Set();

  constructor(state: State) {
    this.#state = state;
  }

  get state(): Readonly<State> {
    return this.#state;
  }

  /**
   * Sets parts of the state, and then calls, once each and in the order in which they came, the listeners to any of these
   * parts; also to a part that is set to the value that it had.
   */
  set(parts: Partial<State>) {
    this.#state = { ...this.#state, ...parts };
    const changed = new Set(Object.keys(parts) as (keyof State)[]);
    for (const { keys, listener } of [...this.#listeners])
      if (keys.some((key) => changed.has(key))) listener(this.#state, changed);
  }

  /** Calls `listener` whenever one of these parts is set. Returns a function that stops this. */
  on(keys: readonly (keyof State)[], listener: Listener<State>) {
    const one = { keys, listener };
    this.#listeners.add(one);
    return () => this.#listeners.delete(one);
  }
}
