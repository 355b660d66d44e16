// Pictures as files: the same bytes as Python's, in the colours of the page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { INK_NAMES, matrixSvg } from "../ui/picture_svg.js";
import { traces } from "./traces.js";

const FIGURES = await traces("figures");
const css = readFileSync(new URL("../ui/styles.css", import.meta.url), "utf8");

/** @param {string} name */
const lightColour = (name) => new RegExp(`--${name}: ([^;]+);`).exec(css)?.[1] ?? "";
const inks = /** @type {import("../ui/picture_svg.js").Inks} */ (
  Object.fromEntries(
    INK_NAMES.map((name) => [name, lightColour(name).replace("var(--paper)", lightColour("paper"))]),
  )
);

for (const [kind, { values, blocked, words, rows, columns, caption, svg }] of Object.entries(FIGURES)) {
  test(`a picture of weights has the bytes of Python's: ${kind}`, () => {
    const picture = {
      values: Float32Array.from(values),
      offset: 0,
      rows,
      columns,
      rowLabels: words.slice(0, rows),
      columnLabels: words,
      scale: /** @type {const} */ ("probability"),
      largest: 1,
      blocked: (/** @type {number} */ row, /** @type {number} */ column) => blocked[row][column],
      hidden: () => false,
    };
    assert.equal(matrixSvg(picture, caption, "#text=a&b", inks), svg);
  });
}

test("signed numbers, missing cells and hidden rows are drawn as in the grid", () => {
  const picture = {
    values: Float32Array.from([-2, 2, NaN, 0, 1, 1]),
    offset: 0,
    rows: 3,
    columns: 2,
    rowLabels: ["a", "b", "c"],
    columnLabels: ["x", "y"],
    scale: /** @type {const} */ ("signed"),
    largest: 2,
    blocked: () => false,
    missing: (/** @type {number} */ row, /** @type {number} */ column) => row === 1 && column === 0,
    hidden: (/** @type {number} */ row) => row === 2,
  };
  const svg = matrixSvg(picture, ["caption"], "", inks);
  const stops = inks.signed.split(", ");
  const cells = [...svg.matchAll(/width="34" height="34" fill="(#\w+)"/g)].map(([, fill]) => fill);
  assert.deepEqual(cells, [stops[0], stops[4], stops[2]]);
  assert.ok(svg.includes(">−2.00<") && svg.includes(">+2.00<"));
});
