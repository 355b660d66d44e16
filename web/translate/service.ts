// Requests to the service, and in words why one was refused.
import { duration, hasText, nameOf, reader, t } from "./words.ts";

import type { Answer, Language } from "./types.ts";

/** The reader's key. */
export const access = { isNeeded: false, key: "" };

/** An answer that refuses a request. */
class RefusedError extends Error {
  status: number;
  /** After how many seconds the request may be sent again. */
  wait: number;

  constructor(status: number, message = "", wait = 0) {
    super(message);
    this.status = status;
    this.wait = wait;
  }
}

/** A text in a language that the service does not translate from. */
export class UnservedLanguageError extends Error {
  language: Language;

  constructor(language: Language) {
    super(language.code);
    this.language = language;
  }
}

/** Returns in words why there is no answer. The service's reasons are English; Chinese reasons follow from the status. */
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
  const said = await answer.json().catch(() => null); // a proxy's error is a page, not JSON
  throw new RefusedError(answer.status, said?.error, Number(answer.headers.get("Retry-After")));
}

/** Asks an endpoint that wants a key, if the service has keys. */
function askWithKey(path: string, body: FormData | string, signal?: AbortSignal) {
  if (access.isNeeded && !access.key) throw new RefusedError(401);
  const headers = {
    ...(typeof body === "string" && { "Content-Type": "application/json" }),
    ...(access.key && { Authorization: `Bearer ${access.key}` }),
  };
  return ask(path, { method: "POST", headers, body, signal });
}

/** What a text is translated from and into, and how. */
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

/** Returns the code of the language that a text is probably in. */
export async function detect(text: string, signal?: AbortSignal): Promise<string> {
  const [best] = await askWithKey("detect", JSON.stringify({ q: text }), signal);
  return best.language;
}

/** Returns the address of the translation of a file. */
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

/** The status with which the explorer of each model answers, once it is known. */
const explorers = new Map<string, number>();

/** Returns the status with which the explorer of a model answers, without starting it; 0 if there is no answer. */
export async function explorerStatus(model: string) {
  const known = explorers.get(model);
  if (known !== undefined) return known;
  try {
    const address = `explore?${new URLSearchParams({ run: model })}`;
    const { status } = await fetch(address, { method: "HEAD", headers: { Accept: "text/html" } });
    if (status !== 503) explorers.set(model, status); // a busy service may still have an explorer
    return status;
  } catch {
    return 0;
  }
}
