// An act of a chapter: what it highlights, changes and says.

import type { Changes } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { Selection, SomeChanges } from "../app/types.ts";
import type { ChapterAct } from "../figure/figure_view.ts";
import type { StageNumbers } from "../figure/shown.ts";

/** The values that an act's text names, by name, and the variant of the text, if it is not the usual one. */
export interface Found {
  values: Record<string, string>;
  variant?: string;
  /** Whether the text has a second part. */
  more?: boolean;
  /** What stands under the text. */
  picture?: HTMLElement;
}

/** An act; an empty `box` stands for the box that the reader has chosen. */
export interface Act extends ChapterAct {
  /**
   * Returns what the act highlights. Without this function, the word, heads and box that the reader has chosen stay
   * highlighted.
   */
  looks?(app: App): Promise<Partial<Selection> | null>;
  /** Returns the changes that apply while the act is shown; null = the reader's own changes. */
  changes?(app: App): Promise<SomeChanges | null>;
  /** Returns whether a result was computed with the act's changes; until then, the act's text is empty. */
  made?(changes: Changes): boolean;
  found?(app: App, numbers: StageNumbers): Found | Promise<Found>;
}
