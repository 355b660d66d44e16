// The texts of the page, and the formats of numbers and language names, in the reader's language.
import type { Language, PageData } from "./types.ts";

export const data: PageData = JSON.parse(document.getElementById("data")?.textContent ?? "");

export const reader = { language: navigator.language.startsWith("zh") ? "zh" : ("en" as "en" | "zh") };

/** Returns whether the page has a text with this key. */
export const hasText = (key: string) => key in data.strings.en;

/** Returns the text with this key; {0}, {1} … are filled in. */
export function t(key: string, ...values: string[]) {
  return data.strings[reader.language][key].replace(/\{(\d)\}/g, (_, at) => values[at]);
}

/** Returns a number as text: plain, as a percentage, or with a unit. */
export function number(value: number, how: Intl.NumberFormatOptions = {}) {
  return new Intl.NumberFormat(reader.language, { maximumFractionDigits: 0, ...how }).format(value);
}

/** Returns a probability as a percentage. */
export const percent = (value: number) => number(value, { style: "percent" });

/** Returns a duration as text. */
export function duration(seconds: number) {
  const [value, unit] = seconds < 100 ? [seconds, "second"] : [Math.ceil(seconds / 60), "minute"];
  return number(value, { style: "unit", unit, unitDisplay: "long" });
}

/** Returns the name of a language. */
export function nameOf({ code, name }: Language) {
  if (reader.language === "en") return name;
  try {
    return new Intl.DisplayNames([reader.language], { type: "language", fallback: "none" }).of(code) ?? name;
  } catch {
    return name; // the name is free text from the run's configuration
  }
}
