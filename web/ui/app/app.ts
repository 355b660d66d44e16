// One view of the explorer: its state, and the actions of the reader that change it. The panels draw the state.
import { checkChanges, NO_CHANGES } from "../../engine/changes.ts";
import { createEngine, parity } from "../../engine/engine.ts";
import { stepsUnder } from "../../engine/mistakes.ts";
import { boxOfPoint, shapeOf } from "./boxes.ts";
import { headsWith, sharpestHeads } from "./heads.ts";
import { isChanged, labelsOf, maskOf, Translator } from "./translator.ts";
import { firstState } from "./state.ts";
import { Store } from "./store.ts";

import type { Cell, Changes, Engine, Explained, Host, Payload } from "../../engine/types.ts";
import type { State } from "./state.ts";
import type { Listener } from "./store.ts";
import type { Asked, Selection, PanelName, Search, Situation, SomeChanges } from "./types.ts";

const PANELS: PanelName[] = ["why", "changes", "beam", "positions", "training", "vocabulary"];
const RECORDED_PANELS: PanelName[] = ["why", "beam", "positions", "vocabulary"];

/** Returns the app of one view; aborting `signal` ends everything that the app has started. */
export async function createApp(payload: Payload, host: Host | null, signal: AbortSignal) {
  const engine = await createEngine(payload, host);
  const app = new App(payload, engine, signal);
  await app.open(payload.sentence);
  const { reference } = app.result;
  app.show({ heads: await sharpestHeads(engine.config, reference, payload.alignment) });
  const { source_ids: source, target_ids: target } = payload.trace ?? {};
  const known = String([reference.sourceIds, reference.targetIds]) === String([source, target]);
  app.parity = await parity(engine, payload, known ? reference.trace : null);
  return app;
}

export class App implements Explained {
  payload: Payload;
  engine: Engine;
  signal: AbortSignal;
  translator: Translator;
  /** The largest difference from PyTorch's numbers; null if the page has no PyTorch numbers. */
  parity: number | null = null;
  /** Returns the address of this view's state; null if the view has no address of its own. */
  address: () => string | null = () => null;
  #store: Store<State>;
  /** The last request that could be computed; restored when a later request fails. */
  #computable: Asked;
  #run = 0;

  constructor(payload: Payload, engine: Engine, signal: AbortSignal) {
    this.payload = payload;
    this.engine = engine;
    this.signal = signal;
    this.translator = new Translator(engine, (key, ...values) => this.t(key, ...values));
    this.#store = new Store(firstState(payload, engine));
    this.#computable = this.#asked;
  }

  // What the view shows

  get state() {
    return this.#store.state;
  }

  get config() {
    return this.engine.config;
  }

  get changes() {
    return this.state.changes;
  }

  get #asked(): Asked {
    const { sentence, changes, search } = this.state;
    return { sentence, changes, search };
  }

  /** The last results; panels are made only after the first result. */
  get result() {
    const { result } = this.state;
    if (!result) throw new Error("nothing is computed yet");
    return result;
  }

  /** Whether the reader has changed anything. */
  get changed() {
    return isChanged(this.state);
  }

  /** The names of the panels. A recording has no panel of changes and no panel of the training. */
  get panels() {
    return this.engine.live === false ? RECORDED_PANELS : PANELS;
  }

  /** Calls `listener` when one of these parts of the state is set. Returns a function that removes the listener. */
  on(keys: readonly (keyof State)[], listener: Listener<State>) {
    return this.#store.on(keys, listener);
  }

  /** Returns a text of the interface in the reader's language; {0}, {1} … are filled in. */
  t = (key: string, ...values: (string | number)[]) => {
    const { strings } = this.payload;
    const text = strings[this.state.language][key] ?? strings.en[key] ?? key;
    return text.replace(/\{(\d)\}/g, (whole, place) => String(values[Number(place)] ?? whole));
  };

  /** Returns the value of a point for the current sentence under the current changes. */
  async value(name: string) {
    return this.result.current.trace.get(name);
  }

  /** Returns the tokens of a point's rows and columns; null if an axis counts dimensions. */
  labels(name: string) {
    return labelsOf(this.result.current, name);
  }

  /** Returns the mask of an attention under the current changes. */
  mask(attention: string) {
    return maskOf(this.config, this.result.current, attention);
  }

  // Actions that change the selection

  /** Changes what the reader has selected. */
  show(looks: Partial<Selection>) {
    this.#store.set(looks);
  }

  /** Opens a number: the box of its tensor as a grid of all numbers. */
  select(cell: Cell) {
    this.show(this.selectionAt(cell));
  }

  /** Returns the selection with which a number is open: its box, its word and its head; the rest is as before. */
  selectionAt({ name, index }: Cell, before: Selection = this.state): Partial<Selection> {
    const { heads, zoom, chapter } = before;
    const box = this.boxOf(name);
    const [row, column] = index.slice(-2);
    const isKey = /\.(key|value)$/.test(name);
    const isOfKey = /\.(scores|weights|added|normed|hidden|activated)$/.test(name);
    const key = isKey ? row : isOfKey ? column : zoom?.box === box ? zoom.key : null;
    return {
      zoom: { box, key },
      panel: "numbers",
      selected: { name, index },
      heads: headsWith(this.config, heads, name, index[0]),
      ...(!isKey && { [this.labels(name).rowSide === "source" ? "sourceWord" : "row"]: row }),
      ...(chapter === 1 && { chapter: 0 }), // the first chapter has no boxes that open
    };
  }

  /** Returns the box to which a point belongs under the reader's changes. */
  boxOf(name: string) {
    return boxOfPoint(this.config, shapeOf(this.config, stepsUnder(this.result.current.changes)), name);
  }

  /** Makes the pictures redraw themselves, because their size on the page has changed. */
  layOut() {
    this.#store.set({ layout: this.state.layout + 1 });
  }

  /** Shows an error message; "" removes it. */
  complain(problem: string) {
    this.#store.set({ problem });
  }

  /** Runs an action of the reader; shows its error if it fails. */
  async attempt(action: () => unknown) {
    this.complain("");
    try {
      await action();
    } catch (error) {
      this.complain(messageOf(error));
    }
  }

  // Actions that compute a new result

  /** Starts again with a different sentence, which becomes the basis for later comparisons. */
  async open(sentence: string) {
    await this.#ask({ sentence, changes: { ...NO_CHANGES } });
  }

  /** Changes the model or its input; changes that `changes` does not mention stay as they are. */
  async set(changes: SomeChanges) {
    checkChanges(changes, this.config);
    await this.#ask({ changes: { ...this.changes, ...changes } });
  }

  /** Undoes all changes of the reader. */
  async reset() {
    await this.#ask({ changes: { ...NO_CHANGES } });
  }

  /** Shows a sentence under these changes, in one computation. */
  async turnTo({ sentence, changes }: Situation) {
    checkChanges(changes, this.config);
    await this.#ask({ sentence, changes: { ...NO_CHANGES, ...changes } });
  }

  /** Sets the beam size or the length penalty. */
  async searchWith(search: Partial<Search>) {
    await this.#ask({ search: { ...this.state.search, ...search } });
  }

  /** Computes the result of a request. A later request replaces a request that is still being computed. */
  async #ask(asked: Partial<Asked>) {
    this.#store.set({ ...asked, busy: true });
    const [run, whole] = [++this.#run, this.#asked];
    try {
      const result = await this.translator.result(whole);
      if (run !== this.#run || this.signal.aborted) return;
      const isNew = whole.sentence !== this.#computable.sentence;
      this.#computable = whole;
      this.#store.set({ result, ...(isNew && { word: null }) }); // `word` refers to a word of the old sentence
    } catch (error) {
      if (run === this.#run) this.#store.set(this.#computable); // restores the last request that could be computed
      throw error;
    } finally {
      if (run === this.#run) this.#store.set({ busy: false });
    }
  }

  /** Returns a sentence, translated with the current search settings and traced under these changes. */
  translated(text: string, prefix: string, changes: Changes) {
    return this.translator.translated(text, prefix, changes, this.state.search);
  }

  /** Returns a translation under the current changes, for the console. */
  translate(text?: string, options?: Partial<Search> & { prefix?: string }) {
    return this.translator.translate(this.#asked, text, options);
  }
}

/** Returns an error as text. */
export function messageOf(error: unknown) {
  return error instanceof Error ? error.message : String(error);
}
