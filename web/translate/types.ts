// What the page knows and what the service answers.

/** A part of a text: [begin, end) in characters. */
export type Span = [begin: number, end: number];

/** Aligned words of a sentence: source begin and end, target begin and end. */
export type Link = [number, number, number, number];

export interface Word {
  begin: number;
  end: number;
  text: string;
  /** The product of its tokens' probabilities; null if it is unknown. */
  probability: number | null;
  /** The index of its least probable token; null if its tokens are unknown. */
  token: number | null;
}

/** A translation of a sentence, and what the model says about it. */
export interface Wording {
  text: string;
  status: string;
  tokens: string[];
  token_log_probs: (number | null)[];
  links: Link[];
  reasons?: string[];
  confidence?: { exact: number | null; close: number | null } | null;
}

export interface Sentence extends Wording {
  /** Where its source is in the reader's text. */
  source: Span;
  /** Where it is in the translation. */
  target: Span;
}

export interface Translated {
  text: string;
  alternatives: string[];
  sentences: Sentence[];
}

/** The answer of POST /v1/translate. */
export interface Answer {
  model: string;
  translations: Translated[];
}

/** The translation of a text. */
export interface Shown {
  /** The characters of the text. */
  points: string[];
  from: string;
  to: string;
  model: string;
  /** The status with which the explorer of the model answers; 0 if it is unknown. */
  explorer: number;
  translated: Translated;
}

export interface Language {
  code: string;
  name: string;
  targets: string[];
}

/** The answer of GET /frontend/settings. */
export interface ServiceSettings {
  charLimit: number;
  keyRequired: boolean;
  supportedFilesFormat: string[];
  language: { source: { code: string }; target: { code: string } };
}

/** The data in the page. */
export interface PageData {
  strings: Record<"en" | "zh", Record<string, string>>;
  /** Maximum number of alternatives of a text. */
  alternatives: number;
  /** Whether the service detects languages. */
  detects: boolean;
}
