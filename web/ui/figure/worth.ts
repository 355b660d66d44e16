// What the highlighted head contributes to the highlighted word.
import { FAMILIES, attentionName } from "../app/heads.ts";
import { costsMost, needsOf } from "./opening.ts";

import type { Stack, Trace } from "../../engine/types.ts";
import type { App } from "../app/app.ts";
import type { StageNumbers } from "./shown.ts";
import type { Worth } from "./sentences.ts";

/**
 * Returns the probability of the highlighted word with and without the highlighted head of a box; null if the box is no
 * attention, or if the page cannot compute.
 */
export async function measureWorth(app: App, numbers: StageNumbers, box: string): Promise<Worth | null> {
  const { translated, row, heads, open } = numbers;
  if (app.engine.live !== true) return null;
  const [stack, id] = box.split(".") as [Stack, string];
  const family = FAMILIES.find((one) => one.stack === stack && one.sublayer === id);
  if (!family) return null;
  const attention = attentionName(family, open[stack]);
  const { changes, sourceIds, targetIds, hypothesis } = translated;
  const off = [...new Set([...(changes.ablated[attention] ?? []), heads[family.id]])];
  const without = await app.translator.traced(sourceIds, targetIds, {
    ...changes,
    ablated: { ...changes.ablated, [attention]: off },
  });
  const probability = async (trace: Trace) => {
    const { shape, data } = await trace.get("log_probs");
    return Math.exp(data[row * shape[1] + hypothesis.ids[row]]);
  };
  const [before, after] = await Promise.all([translated.trace, without].map(probability));
  const place = { attention, head: heads[family.id] };
  const needs = family.id === "cross" ? await needsOf(app, translated, row) : null;
  return { before, after, isMost: await costsMost(translated, row, place, after), needs };
}
