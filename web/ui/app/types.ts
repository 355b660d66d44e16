// The types that the modules of ui/ share. In names, "lit" means highlighted on the stage, and "row" means a position
// of the decoder.
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
} from "../../engine/types.ts";
import type { HEAD_ORDERS } from "../../engine/statistics.ts";

// Elements

/** A child of an element; false, null and undefined are skipped. */
export type Child = Node | string | number | false | null | undefined | readonly Child[];

/** Properties and attributes of an element, by name; properties whose names begin with "on" are listeners. */
export type Properties = Record<
  string,
  string | number | boolean | null | undefined | ((event: Event) => unknown)
>;

// The state of a view

export type Language = "en" | "zh";
export type Theme = "light" | "dark";
/** What the sheet or an opened box can show. "numbers" is the box as a grid of all its numbers. */
export type PanelName =
  | "calculation"
  | "numbers"
  | "why"
  | "changes"
  | "beam"
  | "positions"
  | "training"
  | "vocabulary"
  | "weights"
  | "rollout"
  | "guesses";
export type FamilyId = "encoder" | "cross" | "decoder";
export type HeadOrder = (typeof HEAD_ORDERS)[number];

/** One of the three kinds of attention in the model, in all layers. */
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

/** A head with its statistics. `effect`: by how much log p changes when the head is ablated, once measured. */
export interface MeasuredHead extends HeadPlace {
  entropy: number;
  peak: number;
  diagonal: number;
  special: number;
  punctuation: number;
  effect?: number;
}

/**
 * A position in the source, in the target that the decoder reads, or in the output. Row t of the decoder reads target
 * token t and writes output token t.
 */
export interface Token {
  side: Side | "output";
  position: number;
}

/** The reader's selection: what the view shows. */
export interface Selection {
  language: Language;
  theme: Theme;
  /**
   * The index of the output word that is highlighted on the stage; null = the word that is highlighted when the page
   * opens.
   */
  row: number | null;
  /**
   * The index of the source word that is highlighted on the stage; null = the source word with the largest weight in
   * the highlighted head.
   */
  sourceWord: number | null;
  /** The highlighted box of the stage: a stack and a sub-layer, such as "decoder.cross_attention". */
  box: string;
  /**
   * The opened box, the position whose row is open in the box (null = the position with the largest weight), and
   * whether the box of an attention explains its mask; null = no box.
   */
  zoom: { box: string; key: number | null; mask?: true } | null;
  /** Whether the sheet over the stage is open; it shows `panel`. */
  sheet: boolean;
  /** The open chapter, from 1; 0 = the figure, which the reader explores freely. */
  chapter: number;
  /** The index of the chapter's act. */
  act: number;
  /** What the reader expects of the word without its head, in the act that asks; "" = no guess. */
  guess: "" | "turns" | "stays";
  /** Whether the stage fills the screen, for a lecture. */
  lecture: boolean;
  /** The name of the shown exercise of the book; "" = none. */
  task: string;
  /** The temperature that the reader tries, in the chapter about choosing words and in the box of Softmax. */
  temperature: number;
  heads: Record<FamilyId, HeadPlace>;
  order: HeadOrder;
  contrast: boolean;
  /** The ids of the active changes that stay when the sentence is replaced. */
  pinned: readonly string[];
  /**
   * The second translation on the figure; null = none. `text`: its sentence, or "" for the same sentence. `step`: the
   * training step of its weights; null = the run's final weights, undefined = the weights of the first translation.
   * Without a text and a step, the second translation is the translation before the changes.
   */
  second: { text: string; step?: number | null } | null;
  panel: PanelName;
  /** The index of the translated word that the panel "why" explains; null = none. */
  word: number | null;
  /** The number whose arithmetic is shown; null = the view's default. */
  selected: Cell | null;
}

/** The settings of the search. */
export interface Search {
  beamSize: number;
  lengthPenalty: number;
}

/** A sentence with its translation and trace, computed with the changes that the reader has made to the model. */
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
  /**
   * The parts of the text and of the forced beginning that are not in the vocabulary, so that the model reads <unk>.
   */
  unknown: string[];
  /** The statistics of each family's heads, as far as they have been computed. */
  statistics: Partial<Record<FamilyId, Promise<MeasuredHead[]>>>;
}

/** The results without and with the changes, and the first point at which the two results differ. */
export interface Result {
  reference: Translated;
  current: Translated;
  /** The name of the first point that differs, or null if no point differs. */
  firstDifference: string | null;
  logProbOfReference: number;
}

/** A sentence and its changes. */
export interface Situation {
  sentence: string;
  changes: TextChanges;
}

/** The changes of a sentence that an action sets. */
export type SomeChanges = Partial<TextChanges>;

// The panel of changes

export type SectionName = "words" | "heads" | "masks" | "hand" | "patch" | "parts" | "mistakes";

/** The cell of an attention that the sections "Mask" and "Attention by hand" edit. */
export interface At {
  attention: string;
  head: number;
  query: number;
  key: number;
}

/**
 * An active change. `id` is the same for every sentence. `undo` receives all changes, and returns the values to set if
 * this change is removed.
 */
export interface ActiveChange {
  section: SectionName | "training";
  id: string;
  text: string;
  undo(changes: TextChanges): SomeChanges;
}

/** The patch that the reader is editing: the pairs of rows so far, and the pair that the reader can add next. */
export interface PatchDraft {
  sentence: string;
  point: string;
  /** The number of a head, or "" for all heads. */
  head: string;
  /** A text that identifies the sides of the two tokens of a pair. */
  key: string;
  pairs: [here: number, there: number][];
  here: number;
  there: number;
  /** The translation of the other sentence; `key` identifies the sentence and the weights. */
  donor: { key: string; made: Promise<Translated> } | null;
  /** The effects on this translation of single patches from another sentence, complete or still being measured. */
  sweep: { of: Translated; sentence: string; ending: AbortController; found: HTMLElement } | null;
}

// The environment of a view

/** A kernel's answer: the number of the question, and an error if the question failed. */
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

/** Returns a text of the interface in the reader's language; {0}, {1} … are filled in. */
export type Texts = (key: string, ...values: (string | number)[]) => string;

/** Returns the value of a colour that styles.css defines, by its name, such as "--paper". */
export type Colours = (name: string) => string;

/** What the reader asks for, from which the result is computed. */
export interface Asked {
  sentence: string;
  changes: TextChanges;
  search: Search;
}
