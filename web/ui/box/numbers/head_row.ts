// The heads of a tensor as a row of small pictures, in the order that the reader has chosen. The reader picks a head
// there.
import { HEAD_ORDERS } from "../../../engine/statistics.ts";
import { numberText } from "../../../engine/number_text.ts";
import { brushOf, button, chooser, element, letArrowsMove, refill } from "../../app/dom.ts";
import { measuredHeads, placeIn } from "../../app/heads.ts";
import { coloursAt } from "../../app/colours.ts";
import { largestOf } from "./picture.ts";

import type { Cell, Tensor } from "../../../engine/types.ts";
import type { App } from "../../app/app.ts";
import type { MeasuredHead, Result } from "../../app/types.ts";

const SIDE = 44; // px
/** The measured effects of switching heads off, by result and head. */
const effects: WeakMap<Result, Map<string, Promise<number>>> = new WeakMap();

/** Returns the row, and a function that draws the row for a cell's tensor. `choose` receives the picked head. */
export function createHeads(app: App, choose: (head: number) => void) {
  const title = element("span");
  const order = element("span");
  const told = element("span", { class: "gfn-told", role: "status" });
  const row = element("div", { class: "gfn-heads", role: "group" });
  const holder = element("div", { hidden: true }, element("p", "gfn-tools", title, order, told), row);
  letArrowsMove(row);
  let drawing = 0;

  async function draw({ name, index }: Cell, tensor: Tensor) {
    const run = ++drawing;
    holder.hidden = index.length < 3;
    if (holder.hidden) return;
    const attention = name.replace(/\.\w+$/, "");
    const orders = HEAD_ORDERS.filter((one) => app.engine.live !== false || one !== "ablation");
    title.textContent = app.t("numbers.heads");
    refill(
      order,
      chooser(
        app.t("map.order"),
        orders.map((one) => [one, app.t(`order.${one}`)]),
        app.state.order,
        (one) => app.show({ order: one }),
      ),
    );
    if (app.state.order !== "ablation") told.textContent = "";
    const heads = await measuredIn(app, attention);
    const isLast = () => run === drawing && !app.signal.aborted;
    if (!isLast()) return;
    fill(heads, tensor, index[0]);
    if (app.state.order !== "ablation") return;
    for (const [count, head] of heads.entries()) {
      told.textContent = app.t("map.measuring", count, heads.length);
      head.effect = await effectOf(app, attention, head.head);
      // the reader has chosen a different order or tensor meanwhile
      if (!isLast() || app.state.order !== "ablation") return;
    }
    told.textContent = "";
    fill(heads, tensor, index[0]);
  }

  function fill(heads: MeasuredHead[], tensor: Tensor, shown: number) {
    const hadFocus = row.contains(document.activeElement);
    const { order } = app.state;
    const worth = (one: MeasuredHead) =>
      order === "index" ? 0 : order === "ablation" ? -(one.effect ?? 0) : one[order];
    const ink = coloursAt(holder)("--ink");
    row.ariaLabel = app.t("numbers.heads");
    refill(
      row,
      heads
        .toSorted((a, b) => worth(b) - worth(a))
        .map((one) => headButton(app, one, tensor, one.head === shown, () => choose(one.head), ink)),
    );
    if (hadFocus) row.querySelector<HTMLElement>("[aria-pressed=true]")?.focus();
  }
  return { element: holder, draw };
}

/** Returns a head's picture as a button, with the number by which the heads are sorted. */
function headButton(
  app: App,
  one: MeasuredHead,
  tensor: Tensor,
  isShown: boolean,
  choose: () => void,
  ink: string,
) {
  const { order } = app.state;
  const number =
    order === "index" || (order === "ablation" && one.effect === undefined)
      ? ""
      : numberText(order === "ablation" ? one.effect : one[order], 2, order === "ablation");
  const canvas = element("canvas", { width: 2 * SIDE, height: 2 * SIDE });
  paint(brushOf(canvas), tensor, one.head, ink);
  const name = element("span", {}, `${one.head}`, number && element("small", {}, ` ${number}`));
  const made = button([canvas, name], choose, { pressed: isShown });
  made.tabIndex = isShown ? 0 : -1;
  made.ariaLabel = `${app.t("word.head")} ${one.head}`;
  made.title = describe(app, one);
  return made;
}

/** Returns copies of one attention's measured heads. */
async function measuredIn(app: App, attention: string): Promise<MeasuredHead[]> {
  const { family, layer } = placeIn(attention);
  const heads = await measuredHeads(app.config, family, app.result.current);
  return heads.filter((one) => one.layer === layer).map((one) => ({ ...one }));
}

function effectOf(app: App, attention: string, head: number) {
  const { result } = app;
  const known = effects.get(result) ?? new Map<string, Promise<number>>();
  effects.set(result, known);
  const key = `${attention} ${head}`;
  const effect = known.get(key) ?? app.translator.ablationEffect(result.current, attention, head);
  known.set(key, effect);
  return effect;
}

function describe(app: App, { layer, head, entropy, peak, special, effect }: MeasuredHead) {
  const numbers = [entropy, peak, special].map((one) => numberText(one, 2));
  const said = app.t("map.head", layer, head, ...numbers);
  return effect === undefined
    ? said
    : `${said}${app.t("word.comma")}${app.t("map.effect", numberText(effect, 2, true))}`;
}

/** Paints the matrix of one head; the shades are comparable across all heads. */
function paint(
  brush: CanvasRenderingContext2D,
  { shape: [, rows, columns], data }: Tensor,
  head: number,
  ink: string,
) {
  const [wide, tall] = [(2 * SIDE) / columns, (2 * SIDE) / rows];
  const largest = largestOf(data);
  brush.fillStyle = ink;
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const share = Math.abs(data[(head * rows + row) * columns + column]) / largest;
      if (!(share > 0.02)) continue;
      brush.globalAlpha = Math.min(1, share);
      brush.fillRect(column * wide, row * tall, Math.max(1, wide), Math.max(1, tall));
    }
}
