// Turning the highlighted row of an attention of the figure.
import { splitWeights } from "../../engine/turning.ts";
import { candidatesIn } from "./figure_reading.ts";
import { Hand } from "./hand.ts";
import { positionAt, rowPathOf } from "./row_path.ts";

import type { App } from "../app/app.ts";
import type { FamilyId } from "../app/types.ts";
import type { Written } from "./hand.ts";
import type { Pen } from "./pen.ts";
import type { RowPath } from "./row_path.ts";
import type { StageNumbers } from "./shown.ts";
import type { Turnable } from "./turn.ts";

const PARTS = ["look", "lit", "softmax", "words"];

/** What turning a row needs from the stage. */
export interface Turned {
  pen(): Pen | null;
  drawParts(names: string[]): void;
  /** Returns the pointer's coordinates on the figure's plane. */
  place(event: PointerEvent): { x: number; y: number };
  /** Shows what the model writes with a row set by hand; null restores the usual text. */
  tell(look: RowPath | null, words: string[]): void;
}

/** Returns the highlighted row of an attention as rows to turn; null before the figure is drawn. */
export function turnableRow(app: App, stage: Turned, family: FamilyId): Turnable | null {
  const pen = stage.pen();
  if (!pen) return null;
  const look = rowPathOf(pen, family);
  const { attention, head, query, tokens, stops } = look;
  const mask = app.mask(attention);
  const kept = { ...pen.numbers };
  const { translated, row } = kept;
  return {
    hand: new Hand(app, translated, [{ attention, head, query }], tokens.length, row),
    count: tokens.length,
    at: kept.at[family],
    isReversed: stops[stops.length - 1] < stops[0],
    reads: (key) => mask.data[query * mask.columns + key] !== 0,
    positionAt: (event) => positionAt(look, stage.place(event)),
    draw(at) {
      const weights = Float32Array.from(splitWeights(tokens.length, at));
      const { before } = kept;
      Object.assign(pen.numbers, {
        rows: { ...kept.rows, [family]: weights },
        at: { ...kept.at, [family]: at },
        before: { ...before, rows: { ...before.rows, [family]: before.rows[family] ?? kept.rows[family] } },
        ...(!look.isArc && { read: weights, source: Math.round(at) }),
      } satisfies Partial<StageNumbers>);
      stage.drawParts(["look", "lit"]);
    },
    show(written) {
      if (stage.pen() === pen) showWritten(app, stage, { pen, kept, look }, written);
    },
    end(at) {
      if (at !== null) return app.show({ row, sourceWord: family === "encoder" ? query : null });
      Object.assign(pen.numbers, kept);
      stage.drawParts(PARTS);
      stage.tell(null, []);
    },
  };
}

/**
 * Shows what the model writes with a row set by hand: the next word at once, and the words after it when the page has
 * computed them. `kept`: the numbers before the turn.
 */
function showWritten(
  app: App,
  stage: Turned,
  { pen, kept, look }: { pen: Pen; kept: StageNumbers; look: RowPath },
  { logProbs, ids }: Written,
) {
  const { numbers } = pen;
  const { translated, before, row } = kept;
  numbers.candidates = candidatesIn(app, logProbs, 5);
  const all = ids ?? [...translated.hypothesis.ids.slice(0, row), numbers.candidates[0].id];
  const shown = all.slice(0, translated.outputTokens.length); // the figure has no columns for more words
  const outputTokens = app.engine.tokens("target", shown);
  const was = before.word ?? translated.outputTokens[row];
  numbers.before = { ...numbers.before, word: was === outputTokens[row] ? null : was };
  numbers.translated = {
    ...translated,
    outputTokens,
    hypothesis: { ...translated.hypothesis, ids: shown },
  };
  stage.drawParts(ids ? ["softmax", "words"] : ["softmax"]);
  if (ids) stage.tell(look, app.engine.tokens("target", ids));
}
