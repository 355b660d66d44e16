// The vocabulary: the words or word pieces that a text is split into, with a search.
import { UNKNOWN_ID } from "../../engine/tokenizers.ts";
import { element, note, refill } from "../app/dom.ts";

import type { Payload } from "../../engine/types.ts";
import type { App } from "../app/app.ts";

const SHOWN = 1000; // maximum number of tokens shown at once
const known: WeakMap<Payload, string[]> = new WeakMap();

/**
 * Returns the tokens of the source vocabulary as a reader would type them, in the vocabulary's order; for a
 * recording, only the tokens that occur in the recording.
 */
export function knownTokens({ payload, engine }: App) {
  const all = known.get(payload);
  if (all) return all; // cached, because each typed letter needs the list
  const space = engine.tokenizers.source.kind === "words" ? "" : "␣";
  const named = Object.entries(payload.source.tokens).filter(([id]) => Number(id) > UNKNOWN_ID);
  const made = [...new Set(named.map(([, token]) => token.replaceAll("▁", space)))].filter(Boolean);
  known.set(payload, made);
  return made;
}

export function createVocabularyPanel(app: App) {
  const find = element("input", { type: "search" });
  const about = note();
  const count = element("p", { class: "gf-note", role: "status" });
  const list = element("ul", { class: "gf-vocabulary", tabindex: "0" });
  const fill = () => {
    const { source } = app.engine.tokenizers;
    const all = knownTokens(app).toSorted(new Intl.Collator().compare);
    const wanted = find.value.trim().toLowerCase();
    const found = all.filter((token) => token.toLowerCase().includes(wanted));
    const kind = source.suggestsTokens || source.kind === "recorded" ? source.kind : "pieces";
    about.textContent = app.t(`vocabulary.${kind}`, all.length, app.config.source_vocab_size);
    for (const one of [find, list]) one.ariaLabel = app.t("vocabulary.find");
    find.placeholder = app.t("vocabulary.find");
    count.textContent = app.t("vocabulary.found", Math.min(found.length, SHOWN), found.length);
    refill(
      list,
      found.slice(0, SHOWN).map((token) => element("li", { dir: "auto" }, token)),
    );
  };
  find.addEventListener("input", fill);
  app.on(["language"], fill);
  fill();
  return element("div", {}, about, find, count, list);
}
