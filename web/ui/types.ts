// The types that the modules of ui/ exchange.
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
} from "../engine/types.ts";
import type { App } from "./app.ts";
import type { HEAD_ORDERS } from "../engine/statistics.ts";

// Elements

/** A child of an element; false, null and undefined are left out. */
export type Child = Node | string | number | false | null | undefined | readonly Child[];

/** Properties and attributes of an element, by name; `on…` are listeners. */
export type Properties = Record<
  string,
  string | number | boolean | null | undefined | ((event: Event) => unknown)
>;

// The state of a view

export type Language = "en" | "zh";
export type Theme = "light" | "dark";
/** The page's faces: the stage, which is Figure 1, and all numbers. */
export type Face = "stage" | "numbers";
export type PanelName = "numbers" | "why" | "changes" | "beam" | "positions" | "training" | "vocabulary";
/** What an opened box can show in place of its calculation, besides panels. */
export type SegmentName = "weights" | "rollout" | "guesses";
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

/** A head with its statistics; `effect` is the change of log p when it is ablated, once computed. */
export interface MeasuredHead extends HeadPlace {
  entropy: number;
  peak: number;
  diagonal: number;
  special: number;
  punctuation: number;
  effect?: number;
}

/**
 * A position in the source, in the target that the decoder reads, or in the output: the row of a target position
 * writes the output at the same position.
 */
export interface Token {
  side: Side | "output";
  position: number;
}

/** The reader's selection: what the view shows. */
export interface Looks {
  language: Language;
  theme: Theme;
  view: Face;
  /** The place of the written word that the stage lights; null = the one with which it opens. */
  row: number | null;
  /** The place of the source word that the stage lights; null = the one that the lit head reads most. */
  sourceWord: number | null;
  /** The lit box of the stage: a stack and a sub-layer, such as "decoder.cross_attention". */
  box: string;
  /** The opened box and the position whose row is open (null = the one with the largest weight); null = the figure. */
  zoom: { box: string; key: number | null } | null;
  /** Whether the stage's sheet is open, with the panel. */
  sheet: boolean;
  /** The chapter that is open, from 1; 0 = the figure, where everything is the reader's. */
  chapter: number;
  /** The act of the chapter. */
  act: number;
  /** Whether the stage fills the screen, for a room of listeners. */
  lecture: boolean;
  /** The task of a book's exercise that is shown; "" = none. */
  task: string;
  /** The temperature that the reader tries in the chapter about choosing. */
  temperature: number;
  heads: Record<FamilyId, HeadPlace>;
  order: HeadOrder;
  contrast: boolean;
  /** The ids of the active changes that a new sentence keeps. */
  pinned: readonly string[];
  /**
   * The second translation on the figure: of this text, or if it is blank of the same sentence, with the weights of a step
   * (null = those of the run, undefined = those of the first); null = none. With neither, the sentence before the changes.
   */
  second: { text: string; step?: number | null } | null;
  panel: PanelName | SegmentName;
  /** The place of the translation's word that the panel "why" explains; null = none. */
  word: number | null;
  /** The number whose arithmetic is shown; null = the one with which a view begins. */
  selected: Cell | null;
}

/** The settings of the search. */
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
  /** The parts of the text and of the forced beginning that the vocabulary lacks: the model reads <unk>. */
  unknown: string[];
  /** The statistics of a family's heads, once computed. */
  statistics: Partial<Record<FamilyId, Promise<MeasuredHead[]>>>;
}

/** The results: the sentence without and with the changes, and the first difference. */
export interface Result {
  reference: Translated;
  current: Translated;
  /** The first point that differs; null if none differs. */
  firstDifference: string | null;
  logProbOfReference: number;
}

/** A sentence and its changes. */
export interface Situation {
  sentence: string;
  changes: TextChanges;
}

/** Some of the changes for a sentence. */
export type SomeChanges = Partial<TextChanges>;

// The panel of changes

export type SectionName = "words" | "heads" | "masks" | "hand" | "patch" | "parts" | "mistakes";

/** The cell of an attention to which the sections "Mask" and "Attention by hand" apply. */
export interface At {
  attention: string;
  head: number;
  query: number;
  key: number;
}

/** An active change. `id` is the same in every sentence; `undo` returns the values that undo it among these changes. */
export interface ActiveChange {
  section: SectionName | "training";
  id: string;
  text: string;
  undo(changes: TextChanges): SomeChanges;
}

/** The patch that the reader is editing: pairs of rows, and the next pair. */
export interface PatchDraft {
  sentence: string;
  point: string;
  /** One head's number, or "" for all. */
  head: string;
  /** The side of the pairs' tokens. */
  key: string;
  pairs: [here: number, there: number][];
  here: number;
  there: number;
  /** The other sentence, translated; `key` identifies the sentence and the weights. */
  donor: { key: string; made: Promise<Translated> } | null;
  /** The effects on this translation of patches from another sentence, measured or being measured. */
  sweep: { of: Translated; sentence: string; ending: AbortController; found: HTMLElement } | null;
}

/** The state that the sections share: choices that are not yet changes. */
export interface ChangesPanel {
  app: App;
  at: At;
  history: { past: string[]; future: string[]; undo(): Promise<void>; redo(): Promise<void> };
  redraw(): Promise<void>;
  /** The index of the source word that is edited. */
  word: number | null;
  /** The index of the output word whose rivals are shown. */
  rival: number | null;
  /** The row of weights that the reader edits. */
  row: { key: string; weights: number[] } | null;
  patch: PatchDraft | null;
}

// The environment of a view

/** The console of a view, ready once `ready` is; docs/explorer.md describes it. */
export interface View {
  ready: Promise<void>;
  app: App | null;
  /** The view that was mounted before this one. */
  earlier: View | undefined;
  closed: boolean;
  close(): void;
}

/** An element that may hold a view. */
export type Mounted = HTMLElement & { glassformer?: View };

declare global {
  /** The newest open view of the page. */
  var glassformer: View | undefined;
}

/** A kernel's answer: the number of its question, and an error. */
export interface Message {
  id: string;
  error?: string;
}

/** The part of anywidget's model that the page uses. */
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

/** Returns the value of a colour in styles.css by its name, such as "--paper". */
export type Colours = (name: string) => string;
