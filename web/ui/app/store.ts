// The state of a view, kept in one place. Each drawing is a function of the state, and is redrawn when a part of the
// state that the drawing reads is set.

/** Receives the state, and the parts that were set. */
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
   * Sets parts of the state, and then calls the listeners to any of these parts. Each listener is called once, in the
   * order in which the listeners were added, even if the new value equals the old value.
   */
  set(parts: Partial<State>) {
    this.#state = { ...this.#state, ...parts };
    const changed = new Set(Object.keys(parts) as (keyof State)[]);
    for (const { keys, listener } of [...this.#listeners])
      if (keys.some((key) => changed.has(key))) listener(this.#state, changed);
  }

  /** Calls `listener` whenever one of these parts is set. Returns a function that removes the listener. */
  on(keys: readonly (keyof State)[], listener: Listener<State>) {
    const one = { keys, listener };
    this.#listeners.add(one);
    return () => this.#listeners.delete(one);
  }
}
