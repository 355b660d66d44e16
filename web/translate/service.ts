// Requests to the service, and messages that say why a request was refused.
import { duration, hasText, nameOf, reader, t } from "./words.ts";

import type { Answer, Language } from "./types.ts";

/** Whether the service needs a key, and the reader's key. */
export const access = { isNeeded: false, key: "" };

/** Thrown when the service refuses a request. */
class RefusedError extends Error {
  status: number;
  /** The number of seconds to wait before trying again. */
  wait: number;

  constructor(status: number, message = "", wait = 0) {
    super(message);
    this.status = status;
    this.wait = wait;
  }
}

/** Thrown for a text in a language that the service does not translate from. */
export class UnservedLanguageError extends Error {
  language: Language;

  constructor(language: Language) {
    super(language.code);
    this.language = language;
  }
}

/**
 * Returns a message that says why there is no answer. The service's own reasons are in English; Chinese ones are chosen
 * by status.
 */
export function inWords(error: unknown) {
  if (error instanceof UnservedLanguageError) return t("unserved", nameOf(error.language));
  if (!(error instanceof RefusedError)) return t("unreachable");
  const { status, message, wait } = error;
  if (!hasText(`refused.${status}`)) return t("refused", String(status));
  const sentence = t(`refused.${status}`, duration(wait));
  return status === 400 && reader.language === "en" ? `${sentence} ${message}` : sentence;
}

/** Returns the JSON of an endpoint's answer. */
export async function ask(path: string, how?: RequestInit): Promise<any> {
  const answer = await fetch(path, how);
  if (answer.ok) return answer.json();
  const said = await answer.json().catch(() => null); // a proxy reports errors as HTML pages, not as JSON
  throw new RefusedError(answer.status, said?.error, Number(answer.headers.get("Retry-After")));
}

/** Asks an endpoint; sends the reader's key if the service needs one. */
function askWithKey(path: string, body: FormData | string, signal?: AbortSignal) {
  if (access.isNeeded && !access.key) throw new RefusedError(401);
  const headers = {
    ...(typeof body === "string" && { "Content-Type": "application/json" }),
    ...(access.key && { Authorization: `Bearer ${access.key}` }),
  };
  return ask(path, { method: "POST", headers, body, signal });
}

/** The languages and options of a translation. */
interface How {
  source: string;
  target: string;
  n_best?: number;
  prefix?: string;
}

/** Returns the translation of a text. */
export async function translate(text: string, how: How, signal?: AbortSignal): Promise<Answer> {
  return askWithKey("v1/translate", JSON.stringify({ texts: [text], links: true, ...how }), signal);
}

/** Returns the code of a text's most probable language. */
export async function detect(text: string, signal?: AbortSignal): Promise<string> {
  const [best] = await askWithKey("detect", JSON.stringify({ q: text }), signal);
  return best.language;
}

/** Returns the URL of a file's translation. */
export async function translateFile(
  file: File,
  how: Pick<How, "source" | "target">,
  signal?: AbortSignal,
): Promise<string> {
  const form = new FormData();
  for (const [name, value] of Object.entries(how)) form.set(name, value);
  form.set("file", file);
  return (await askWithKey("translate_file", form, signal)).translatedFileUrl;
}

/** The HTTP status of each model's explorer, once known. */
const explorers = new Map<string, number>();

/** Returns the HTTP status of a model's explorer without starting it, or 0 if there is no answer. */
export async function explorerStatus(model: string) {
  const known = explorers.get(model);
  if (known !== undefined) return known;
  try {
    const address = `explore?${new URLSearchParams({ run: model })}`;
    const { status } = await fetch(address, { method: "HEAD", headers: { Accept: "text/html" } });
    // 503: the service is busy, so the model may have an explorer all the same
    if (status !== 503) explorers.set(model, status);
    return status;
  } catch {
    return 0;
  }
}
