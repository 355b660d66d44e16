// What the modules of ui/ hand to each other: the types behind their JSDoc.
import type {
  Cell,
  Changes,
  Hypothesis,
  SearchResult,
  Sentence,
  Side,
  Stack,
  TextChanges,
  Trace,
} from "../engine/types.js";
import type { App } from "./app.js";
import type { HEAD_ORDERS } from "../engine/statistics.js";

// Elements

/** What may stand in an element; false, null and undefined are left out. */
export type Child = Node | string | number | false | null | undefined | readonly Child[];

/** Properties and attributes of an element, by name; `on…` are listeners. */
export type Properties = Record<
  string,
  string | number | boolean | null | undefined | ((event: Event) => unknown)
>;

// What a view shows

export type Language = "en" | "zh";
export type Theme = "light" | "dark";
export type Stage = "map" | "point";
export type PanelName = "numbers" | "changes" | "beam" | "positions" | "training";
export type FamilyId = "encoder" | "cross" | "decoder";
export type HeadOrder = (typeof HEAD_ORDERS)[number];

/** One of the three attentions of the model, in all of its layers. */
export interface Family {
  id: FamilyId;
  stack: Stack;
  sublayer: string;
  rows: Side;
  columns: Side;
}

/** A head of a family. */
export interface HeadPlace {
  layer: number;
  head: number;
}

/** A head with its statistics; `effect` is the change of log p without it, once it was asked for. */
export interface MeasuredHead extends HeadPlace {
  entropy: number;
  peak: number;
  diagonal: number;
  special: number;
  punctuation: number;
  effect?: number;
}

/** A place in the source or in the target. */
export interface Token {
  side: Side;
  position: number;
}

/** What the reader looks at. */
export interface Looks {
  language: Language;
  theme: Theme;
  stage: Stage;
  point: { name: string; head: number };
  heads: Record<FamilyId, HeadPlace>;
  order: HeadOrder;
  contrast: boolean;
  panel: PanelName;
  /** The number whose arithmetic is shown. */
  selected: Cell | null;
  /** How many target positions the animation has reached; null = all. */
  shown: number | null;
  /** The step of the ribbon that is looked at. */
  step: string | null;
  /** Milliseconds of a step of the animation. */
  pace: number;
}

/** How outputs are searched for. */
export interface Search {
  beamSize: number;
  lengthPenalty: number;
}

/** One sentence translated and traced under changes. */
export interface Translated extends Sentence {
  text: string;
  search: SearchResult;
  hypothesis: Hypothesis;
  prefixIds: number[];
  trace: Trace;
  changes: Changes;
  sourceTokens: string[];
  targetTokens: string[];
  outputTokens: string[];
  /** Of the heads of a family, once they were asked for. */
  statistics: Partial<Record<FamilyId, Promise<MeasuredHead[]>>>;
}

/** What was computed: the sentence without changes and with them, and what the changes did. */
export interface Result {
  reference: Translated;
  current: Translated;
  /** The first point that differs; null where none does. */
  firstDifference: string | null;
  logProbOfReference: number;
}

/** What a view tells its panels. */
export interface Events {
  result: Result;
  ui: (keyof Looks)[];
  hover: Token[];
  busy: boolean;
  /** A sentence that says what went wrong, or "". */
  problem: string;
  resize: null;
}

/** What can be changed for a sentence: TextChanges, each of which may stay as it is. */
export type SomeChanges = Partial<TextChanges>;

// The panel of changes

export type SectionName = "words" | "heads" | "masks" | "hand" | "patch" | "parts" | "mistakes";

/** The cell of an attention that masks and rows by hand are about. */
export interface At {
  attention: string;
  head: number;
  query: number;
  key: number;
}

/** A change that is on; `undo` returns what to set, as things are then. */
export interface ActiveChange {
  section: SectionName | "training";
  text: string;
  undo(): SomeChanges;
}

/** A patch that the reader is putting together: pairs of rows, and the two that may become the next. */
export interface PatchDraft {
  sentence: string;
  point: string;
  /** One head's number, or "" for all. */
  head: string;
  /** Which tokens the pairs are about. */
  key: string;
  pairs: [here: number, there: number][];
  here: number;
  there: number;
  /** The other sentence, translated; `key` says which and by which weights. */
  donor: { key: string; made: Promise<Translated> } | null;
}

/** What the sections share: what is picked but not yet a change. */
export interface ChangesPanel {
  app: App;
  at: At;
  history: { past: string[]; future: string[]; undo(): Promise<void>; redo(): Promise<void> };
  redraw(): Promise<void>;
  /** The place of the source's word that is edited. */
  word: number | null;
  /** The place of the output's word whose rivals are shown. */
  rival: number | null;
  /** The row of weights that is written by hand. */
  row: { key: string; weights: number[] } | null;
  patch: PatchDraft | null;
}

// Where a view lives

/** The console of a view, ready once `ready` is; docs/explorer.md describes it. */
export interface View {
  ready: Promise<void>;
  app: App | null;
  /** The view that was there before this one. */
  earlier: View | undefined;
  closed: boolean;
  close(): void;
}

/** An element that may hold a view. */
export type Mounted = HTMLElement & { glassformer?: View };

declare global {
  /** The newest view of the page that is not closed. */
  var glassformer: View | undefined;
}

/** What a kernel answers: to which question, and what went wrong. */
export interface Message {
  id: string;
  error?: string;
}

/** The side of anywidget's model that the page uses. */
export interface AnyModel {
  on(
    event: "msg:custom",
    listener: (message: Message, buffers: (ArrayBuffer | ArrayBufferView<ArrayBuffer>)[]) => void,
  ): void;
  off(
    event: "msg:custom",
    listener: (message: Message, buffers: (ArrayBuffer | ArrayBufferView<ArrayBuffer>)[]) => void,
  ): void;
  send(message: object): void;
}

// Pictures

export type Scale = "probability" | "signed";

/** A matrix to be drawn: the numbers of `values` from `offset` on. */
export interface Picture {
  values: Float32Array;
  offset: number;
  rows: number;
  columns: number;
  rowLabels: string[];
  columnLabels: string[];
  /** The dimensions of the columns, where not all are shown. */
  columnsShown?: number[] | null;
  scale: Scale;
  /** What is drawn strongest: one number, or one for each row. */
  largest: number | number[];
  blocked(row: number, column: number): boolean;
  hidden(row: number): boolean;
  describe(row: number, column: number): string;
  label: string;
  chosen: [row: number, column: number] | null;
}

/** Returns the value of a colour in styles.css by its name, such as "--paper". */
export type Colours = (name: string) => string;

/** A square of a canvas. */
export interface Square {
  x: number;
  y: number;
  side: number;
}
