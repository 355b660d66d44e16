// Chooses which words of a vocabulary are shown: a window of the ranking, likeliest first, or the results of a search.
import { button, element, named } from "../../app/dom.ts";

import type { Tensor } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";

const WORDS_SHOWN = 16;
const orders: WeakMap<Float32Array, number[]> = new WeakMap();

/** Returns a row of controls, and a function that returns the ids of the words to show. */
export function createVocabulary(app: App, changed: () => void) {
  let first = 0;
  let chosen = -1;
  const field = element("input", { type: "search", size: 12, placeholder: " " });
  const place = element("span", { role: "status" });
  const move = (by: number) => () => {
    first += by;
    changed();
  };
  const [back, on] = [button("‹", move(-WORDS_SHOWN)), button("›", move(WORDS_SHOWN))];
  field.addEventListener("input", () => {
    first = 0;
    changed();
  });

  /** `word`: the id of the chosen word; when it changes, the window moves to it. */
  function shown(tensor: Tensor, word: number) {
    const typed = field.value.trim().toLowerCase();
    const order = bestFirst(tensor);
    const tokens = typed ? app.engine.tokens("target", order) : [];
    const found = typed ? order.filter((_, at) => tokens[at].toLowerCase().includes(typed)) : order;
    const at = found.indexOf(word);
    if (word !== chosen && at >= 0 && (at < first || at >= first + WORDS_SHOWN))
      first = at - (at % WORDS_SHOWN);
    chosen = word;
    first = Math.min(Math.max(first, 0), Math.max(found.length - 1, 0));
    const end = Math.min(first + WORDS_SHOWN, found.length);
    named(field, app.t("point.find"));
    named(back, app.t("point.before"));
    named(on, app.t("point.after"));
    field.placeholder = app.t("point.find");
    place.textContent = app.t("point.range", found.length && first + 1, end, found.length);
    [back.disabled, on.disabled] = [first === 0, end >= found.length];
    return found.slice(first, end);
  }
  return { element: element("p", { class: "gfn-tools", hidden: true }, field, back, place, on), shown };
}

/**
 * Returns the ids of all words, sorted by each word's highest number at any position; words without any number are
 * left out.
 */
function bestFirst({ shape, data }: Tensor) {
  const width = shape[shape.length - 1];
  const known = orders.get(data);
  if (known) return known;
  const best = new Float32Array(width).fill(-Infinity);
  for (let at = 0; at < data.length; at++) if (data[at] > best[at % width]) best[at % width] = data[at];
  const order = [...best.keys()].filter((id) => best[id] > -Infinity).sort((a, b) => best[b] - best[a]);
  orders.set(data, order);
  return order;
}
