// Pictures as files, in the colours of the page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { INK_NAMES, matrixSvg } from "../ui/picture_svg.ts";

import type { Inks } from "../ui/picture_svg.ts";

const css = readFileSync(new URL("../ui/styles.css", import.meta.url), "utf8");

const lightColour = (name: string) => new RegExp(`--${name}: ([^;]+);`).exec(css)?.[1] ?? "";
const inks = Object.fromEntries(
  INK_NAMES.map((name) => [name, lightColour(name).replace("var(--paper)", lightColour("paper"))]),
) as Inks;

/** Returns a picture of weights whose cells above the diagonal are blocked. */
function weights(values: number[], rows: number, columns: number) {
  const words = Array.from({ length: columns }, (_, at) => `<wort${at}> 中文`);
  return {
    values: Float32Array.from(values),
    offset: 0,
    rows,
    columns,
    rowLabels: words.slice(0, rows),
    columnLabels: words,
    scale: "probability" as const,
    largest: 1,
    blocked: (row: number, column: number) => column > row,
  };
}

test("weights have their colours and numbers, blocked cells a line, and texts are escaped", () => {
  const svg = matrixSvg(weights([1, 0, 0.0625, 0.004], 2, 2), ["a & b", "<c>\u0001"], "#text=a&b", inks);
  const stops = inks.probability.split(", ");
  const cells = [...svg.matchAll(/width="34" height="34" fill="(#\w+)"/g)].map(([, fill]) => fill);
  assert.equal(cells[0], stops[4]);
  assert.equal(cells[1], inks.blocked);
  const numbers = [...svg.matchAll(/font-size="10" fill="[^"]+">([^<]+)</g)].map(([, number]) => number);
  assert.deepEqual(numbers, ["1.00", "0", ".063"]);
  assert.equal(svg.split(`stroke="${inks.hatching}"`).length, 2);
  for (const part of ["<title>a &amp; b</title>", "<desc>#text=a&amp;b</desc>", ">&lt;c&gt;\ufffd<"])
    assert.ok(svg.includes(part), part);
  assert.equal(svg.split(">&lt;wort1&gt; 中文<").length, 3);
});

test("the cells of a wide picture are small and have no numbers", () => {
  const svg = matrixSvg(weights(Array(41).fill(0.5), 1, 41), ["wide"], "", inks);
  assert.equal(svg.split('width="18" height="18"').length, 42);
  assert.ok(!svg.includes('font-size="10"'));
});

test("signed numbers and missing cells are drawn as in the grid", () => {
  const picture = {
    values: Float32Array.from([-2, 2, NaN, 0]),
    offset: 0,
    rows: 2,
    columns: 2,
    rowLabels: ["a", "b"],
    columnLabels: ["x", "y"],
    scale: "signed" as const,
    largest: 2,
    blocked: () => false,
    missing: (row: number, column: number) => row === 1 && column === 0,
  };
  const svg = matrixSvg(picture, ["caption"], "", inks);
  const stops = inks.signed.split(", ");
  const cells = [...svg.matchAll(/width="34" height="34" fill="(#\w+)"/g)].map(([, fill]) => fill);
  assert.deepEqual(cells, [stops[0], stops[4], stops[2]]);
  assert.ok(svg.includes(">−2.00<") && svg.includes(">+2.00<"));
});

test("a blocked score is −∞, and a long caption is wrapped instead of widening the picture", () => {
  const scores = { ...weights([1, 0, 2, 1], 2, 2), scale: "signed" as const };
  const said = "a rather long caption ".repeat(12).trim();
  const svg = matrixSvg(scores, [said, "short"], "", inks);
  assert.ok(svg.includes(">–∞<"));
  assert.equal(/width="(\d+)"/.exec(svg)?.[1], "432");
  const bold = [...svg.matchAll(/font-weight="bold" fill="[^"]+">([^<]+)</g)].map(([, line]) => line);
  assert.equal(bold.join(" "), said);
  assert.ok(bold.length > 2 && bold.every((line) => line.length * 6.5 <= 420));
});
