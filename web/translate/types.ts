// The page's own data, and the service's answers.

/** A part of a text: [begin, end), in characters. */
export type Span = [begin: number, end: number];

/** Two aligned words of a sentence: begin and end in the source, begin and end in the target. */
export type Link = [number, number, number, number];

export interface Word {
  begin: number;
  end: number;
  text: string;
  /** The product of the probabilities of its tokens; null if unknown. */
  probability: number | null;
  /** The index of its least probable token; null if its tokens are unknown. */
  token: number | null;
}

/** A translation of a sentence, and the model's data about it. */
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
  /** The position of its source in the reader's text. */
  source: Span;
  /** Its position in the translation. */
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

/** A text with its translation. */
export interface Shown {
  /** The characters of the text. */
  points: string[];
  from: string;
  to: string;
  model: string;
  /** The HTTP status of the model's explorer; 0 if unknown. */
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

/** The data that the server puts into the page. */
export interface PageData {
  strings: Record<"en" | "zh", Record<string, string>>;
  /** The maximum number of alternatives for a sentence. */
  alternatives: number;
  /** Whether the service detects languages. */
  detects: boolean;
}
