// What an opened box gives to its frame.

import type { Cell, Explanation, Side } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Child } from "../app/types.ts";
import type { Receipt } from "./receipt.ts";

/** The indices of the words that are highlighted on the stage if the reader has chosen no word. */
export interface Lit {
  row: number;
  source: number;
}

/** The key of a sentence in strings.json, and the values to fill in. */
export interface Sentence {
  key: string;
  values: Value[];
  /** The section of the paper; "" if the paper lacks this part. */
  section: string;
}

/** A number, or a word with the side whose colour the word gets. */
export type Value = string | number | { word: string; side: Side };

/** An opened box: a worked calculation with its explanation. */
export interface Opened {
  /** Identifies the shown part. When this text changes, the panel's open row is scrolled into view. */
  place: string;
  /** The title, such as "Cross-attention, layer 1, head 5". */
  name: string;
  sentence: Sentence;
  /** Notes and links below the sentence. */
  remarks: Child[];
  /** The open number, and its arithmetic; null = the view shows none. */
  cell: Cell;
  receipt: Receipt | null;
  /** The arithmetic as Python can repeat it; null = not at all. */
  made: Explanation | null;
  /** What stands in the bar beside the names of the segments. */
  beside?: Child;
  panel(room: HTMLElement): Child;
}

/** Reads from the trace the data of the box that `state.zoom` names; returns null if the box is of another kind. */
export type ZoomView = (app: App, lit: Lit | null) => Promise<Opened | null>;
