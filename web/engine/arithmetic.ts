// Explains any number of the forward pass: its formula, its terms, and the cells from which the terms come.
//
// The numbers come from the trace on the page and from the model's weights, under the changes that the trace was
// computed with. The steps that a classic mistake replaces contain their own formulas (forward.ts and mistakes.ts).
// Each kind of point has a function that returns its explanation.
import { ACTIVATIONS } from "./activations.ts";
import { numberText, percentText } from "./number_text.ts";
import { attentionMask } from "./forward.ts";
import { stepsUnder } from "./mistakes.ts";
import { pointNames, pointText } from "./model.ts";
import { NORM } from "./norms.ts";
import { tensor } from "./tensor.ts";

import type { Cell, Code, Explained, Explanation, Part, Step, Tensor } from "./types.ts";
type Result = NonNullable<Explained["result"]>;
/** What an explanation needs to know about the number that it explains. */
type OpenCell = Awaited<ReturnType<typeof openCell>>;
/** An explanation before its common fields are added. */
type Made = Partial<Explanation>;
/** A row of a table whose values are summed. */
type Term = Part & { value: number };
/** The product of row t of the point `from` and a row of a matrix, plus a bias. */
interface Product {
  from: string;
  t?: number;
  matrix: string;
  row?: number;
  bias?: boolean;
  symbol: string;
}

const LIKELIEST_WORDS = 12;

/** Thrown when this page lacks the data for an explanation. */
class NotHere extends Error {}

/** Returns the explanation of a number. */
export async function arithmetic(app: Explained, name: string, index: number[]): Promise<Explanation> {
  const cell = await openCell(app, name, index);
  const made = patchedIn(cell) ?? (await explained(cell));
  const { result } = cell;
  const terms = made.terms ?? [result];
  const notes = [...mistakesAt(cell), ...(made.notes ?? [])];
  const plain = { name, index: [...index], result, formula: "", parts: [], steps: [], columns: [] };
  return { ...plain, ...made, terms, difference: sumOf(terms) - result, notes };
}

async function explained(cell: OpenCell) {
  try {
    const maker = MAKERS[cell.kind];
    return maker ? await maker(cell) : { notes: [cell.app.t(pointText(cell.config, cell.name))] };
  } catch (error) {
    if (error instanceof NotHere) return { notes: [error.message] };
    throw error;
  }
}

/** Returns what an explanation needs to know about a cell: its position, its value, the trace and the changes. */
async function openCell(app: Explained, name: string, index: number[]) {
  const { trace, changes, sourceIds, targetIds } = (app.result as Result).current;
  if (!trace.has(name)) {
    const wanted = `one of points(), such as "${trace.names[0]}"`;
    throw new Error(`there is no point ${JSON.stringify(name)}: expected ${wanted}`);
  }
  const { shape, data } = await trace.get(name);
  checkIndex(name, index, shape);
  const result = data[placeOf(shape, index)];
  if (trace.words && Number.isNaN(result))
    throw new Error(app.t("numbers.wordNotRecorded", trace.words.ids[0].length));
  const steps = stepsUnder(changes);
  const [t, c] = index.slice(-2);
  return {
    app,
    name,
    index,
    h: index[index.length - 3],
    t,
    c,
    trace,
    changes,
    sourceIds,
    targetIds,
    steps,
    config: app.config,
    stack: /^(source|encoder)/.test(name) ? "encoder" : "decoder",
    part: name.slice(0, Math.max(name.lastIndexOf("."), 0)),
    kind: kindOf(name),
    shape,
    result,
    weights: await app.engine.model(changes.checkpoint),
    preNorm: steps.preNorm(app.config),
  };
}

function checkIndex(name: string, index: unknown, shape: number[]) {
  const inside = (place: unknown, axis: number) =>
    typeof place === "number" && Number.isInteger(place) && place >= 0 && place < shape[axis];
  if (Array.isArray(index) && index.length === shape.length && index.every(inside)) return;
  const wanted = `${shape.length} whole numbers, from 0 and below ${shape.join(", ")}`;
  throw new Error(`the index of ${name} is ${JSON.stringify(index)}: expected a list of ${wanted}`);
}

function kindOf(name: string) {
  if (/^(source|target)\.input$/.test(name)) return "placed";
  if (/^(encoder|decoder)\.output$/.test(name)) return "end";
  return name.endsWith("feed_forward.output") ? "contracted" : name.replace(/^.*\./, "");
}

function mistakesAt({ app, name, changes }: OpenCell) {
  const made = app.config.mistakes.filter(({ id }) => changes.mistakes.includes(id));
  const acting = made.filter(({ at }) => at.some((one) => fits(name, one)));
  return acting.map(({ id }) => app.t("numbers.changed", app.t(`mistake.${id}`)));
}

/** Returns whether a name matches a pattern, in which * stands for any text. */
function fits(name: string, pattern: string) {
  return new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("*", ".*")}$`).test(name);
}

/**
 * Returns the explanation of a cell that was patched in from another sentence, or null if the cell was not patched
 * in.
 */
function patchedIn({ name, index, h, t, c, changes, result, app }: OpenCell): Made | null {
  const fromSource = /^(source|encoder)|cross_attention\.(key|value)$/.test(name);
  for (const [place, patch] of [...changes.patches.entries()].reverse()) {
    const { point, heads, positions, sourceIds, targetIds } = patch;
    if (point !== name || (index.length === 3 && heads && !heads.includes(h))) continue;
    const rows = (fromSource ? sourceIds : targetIds).length;
    const [, there] = positions.findLast((pair) => pair[0] === t && pair[1] < rows) ?? [];
    if (there === undefined) continue;
    const sentence = app.changes.patches[place]?.sentence ?? "";
    const formula = `${name}[${[...index.slice(0, -2), there, c].join(", ")}]`;
    return given(formula, result, app.t("numbers.patched", sentence, there));
  }
  return null;
}

// Reading numbers

const sumOf = (terms: number[]) => terms.reduce((sum, term) => sum + term, 0);
const largestOf = (values: number[]) => values.reduce((most, value) => Math.max(most, value), -Infinity);
const placeOf = (shape: number[], index: number[]) =>
  index.reduce((place, at, axis) => place * shape[axis] + at, 0);
const cellAt = (name: string, ...index: number[]) => ({ name, index });

/** Returns one row of a point, chosen by the leading indices, as plain numbers. */
async function numbersOf(cell: OpenCell, name: string, ...lead: number[]) {
  return numbersIn(await tensorOf(cell, name), lead);
}

function tensorOf({ trace }: OpenCell, name: string) {
  return trace.get(name);
}

function numbersIn({ shape, data }: Tensor, lead: number[]) {
  const width = shape[shape.length - 1];
  const start = placeOf(shape, lead) * width;
  return Array.from(data.subarray(start, start + width));
}

/**
 * Returns a row of a weight matrix. Pages of large models contain no weights, and recordings contain only the weights
 * of the norms.
 */
function weightRow({ app, weights }: OpenCell, name: string, ...lead: number[]) {
  const weight = weights.find(name);
  if (!weight) throw new NotHere(noWeights(app));
  return numbersIn(weight, lead);
}

function noWeights(app: Explained) {
  return app.t(app.engine.live === false ? "numbers.needsModel" : "numbers.noWeights");
}

// Writing

const shown = (value: number) => numberText(value, 4);
const factor = (value: number) => (value < 0 ? `(${shown(value)})` : shown(value));
const step = (label: string, text: string, value: number, from?: Cell): Step => ({
  label,
  text,
  value,
  from: from && [from],
});

/** Returns the explanation of a number that is not a sum. */
function given(formula: string, value: number, note: string | null = null) {
  const code = { inputs: { result: value }, lines: [] };
  return { formula, terms: [value], code, notes: note ? [note] : [] };
}

/** Returns the explanation of Σ parts. */
function summed(
  formula: string,
  parts: Term[],
  columns: string[],
  inputs: Code["inputs"],
  ...lines: string[]
) {
  const text = ({ left, right, value }: Term) =>
    (left === undefined || right === undefined ? [value] : [left, right]).map(factor).join(" · ");
  const numbers = parts.slice(0, 3).map(text).join(" + ") + (parts.length > 3 ? " + …" : "");
  const terms = parts.map(({ value }) => value);
  const total = { label: "Σ", value: sumOf(terms) };
  return { formula, numbers, parts, columns, terms, total, code: { inputs, lines } };
}

/** Returns the terms of Σ left · right; `name(i)` returns the label and the cells of term i. */
function productParts(
  lefts: number[],
  rights: number[],
  name: (i: number) => Pick<Part, "label" | "from">,
): Term[] {
  return lefts.map((left, i) => ({ ...name(i), left, right: rights[i], value: left * rights[i] }));
}

/** Returns the terms of a sum of cells that share one index, from [point, number] pairs. */
function cellParts(pairs: [point: string, value: number][], index: number[]): Term[] {
  return pairs.map(([name, value]) => ({
    label: name.replace(/^.*\./, ""),
    value,
    from: [cellAt(name, ...index)],
  }));
}

/** Returns the explanation of a number that is a copy of another cell. */
async function copyOf(cell: OpenCell, name: string, index: number[], formula = name) {
  const value = (await numbersOf(cell, name, ...index.slice(0, -1)))[index[index.length - 1]];
  return { ...given(formula, value), parts: cellParts([[name, value]], index) };
}

/** Returns the explanation of a + b, the sum of two points at the cell's own index. */
async function pairOf(cell: OpenCell, formula: string, first: string, second: string) {
  const [rowA, rowB] = [await numbersOf(cell, first, cell.t), await numbersOf(cell, second, cell.t)];
  const [a, b] = [rowA[cell.c], rowB[cell.c]];
  const parts = cellParts(
    [
      [first, a],
      [second, b],
    ],
    [cell.t, cell.c],
  );
  return summed(formula, parts, [], { a, b }, "result = a + b");
}

/** Returns the explanation of Σ x·W (+ b): row t of the point `from` times row `row` of a matrix. */
async function product(
  cell: OpenCell,
  { from, t = cell.t, matrix, row = cell.c, bias = true, symbol }: Product,
): Promise<Made> {
  const x = await numbersOf(cell, from, t);
  const formula = `Σᵢ xᵢ · ${symbol}[${row}, i]${bias ? ` + b[${row}]` : ""}`;
  const name = (i: number) => ({ label: String(i), from: [cellAt(from, t, i)] });
  if (!cell.weights.find(`${matrix}.weight`)) {
    const parts = x.map((left, i) => ({ ...name(i), left }));
    return { formula, parts, columns: ["i", "x"], notes: [noWeights(cell.app)] };
  }
  const w = weightRow(cell, `${matrix}.weight`, row);
  const b = bias ? weightRow(cell, `${matrix}.bias`)[row] : 0;
  const parts = [...productParts(x, w, name), ...(bias ? [{ label: "b", value: b }] : [])];
  const columns = ["i", "x", "W", "x · W"];
  if (!bias) return summed(formula, parts, columns, { x, w }, "result = x @ w");
  return summed(formula, parts, columns, { x, w, b }, "result = x @ w + b");
}

/** Returns the explanation of a product with a matrix of the cell's own sub-layer. */
function matrixOf(cell: OpenCell, from: string, name: string, symbol: string) {
  return product(cell, { from, matrix: `${cell.part}.${name}`, symbol });
}

// The explanations of each kind of point: inputs

function embedded(cell: OpenCell) {
  const { c, t, part, config } = cell;
  const { embeddingScale: scale } = cell.steps;
  const id = (part === "source" ? cell.sourceIds : cell.targetIds)[t] ?? config.pad_id;
  const entry = weightRow(cell, `${part}.tokens.weight`, id)[c];
  if (!scale.symbol) return given(`E[${id}, ${c}]`, entry);
  const square = scale.square(config);
  return {
    ...given(`E[${id}, ${c}] · ${scale.symbol}`, entry * Math.sqrt(square)),
    numbers: `${shown(entry)} · √${square}`,
    code: { inputs: { entry }, lines: [`result = entry * ${square} ** 0.5`] },
  };
}

function positioned(cell: OpenCell): Made {
  const { t, c, config, changes, app } = cell;
  const { positions } = config;
  if (!changes.positions || positions === "none") return given("0", 0, app.t("numbers.positionsOff"));
  const half = Math.ceil(config.d_model / 2);
  switch (positions) {
    case "learned":
      return given(`P[${t}, ${c}]`, weightRow(cell, `${cell.part}.positions.table`, t)[c]);
    case "interleaved":
      return sinusoid(cell, c >> 1, c & 1);
    case "halves":
      return sinusoid(cell, c % half, Number(c >= half));
  }
}

/** Returns the explanation of the sine (`odd` = 0) or the cosine of pair i. */
function sinusoid({ t, config: { d_model: width }, steps: { exponent } }: OpenCell, i: number, odd: number) {
  const count = exponent.count(i, odd);
  const angle = t * 10000 ** (-count / width);
  const wave = odd ? "cos" : "sin";
  return {
    ...given(`${wave}(pos / 10000^(${exponent.symbol(odd)} / d_model))`, Math[wave](angle)),
    numbers: `${wave}(${t} / 10000^(${count} / ${width})) = ${wave}(${shown(angle)})`,
    code: { inputs: {}, lines: [`result = math.${wave}(${t} / 10000 ** (${count} / ${width}))`] },
  };
}

/** Returns the point that is copied to a sub-layer's input or a stack's output. */
function streamBefore({ stack, config, preNorm }: OpenCell, part: string) {
  const names = pointNames(config).filter((name) => name.startsWith(`${stack}.layers`));
  const inputs = names.filter((name) => name.endsWith(".input"));
  const place = part === stack ? inputs.length : inputs.indexOf(`${part}.input`);
  if (place === 0) return stack === "encoder" ? "source.input" : "target.input";
  return inputs[place - 1].replace(/input$/, preNorm ? "added" : "normed");
}

// Attention

/** Returns the point that a sub-layer reads. */
const readBy = ({ part, preNorm }: OpenCell) => `${part}.${preNorm ? "normed" : "input"}`;

/** Returns the explanation of a query, key or value: its row of the stacked matrix [W_Q; W_K; W_V] times the input. */
function projected(cell: OpenCell) {
  const {
    part,
    kind,
    h,
    t,
    c,
    shape: [heads, length, width],
    steps,
    config,
  } = cell;
  const crossed = part.endsWith("cross_attention") && kind !== "query";
  const ofMemory = crossed && steps.crossKeyValue.side === "source";
  const begin = ["query", "key", "value"].indexOf(kind) * heads * config.d_k;
  const place = steps.headRow(t, h, length, heads) * width + c;
  return product(cell, {
    from: ofMemory ? "encoder.output" : readBy(cell),
    t: Math.floor(place / (heads * width)),
    row: begin + (place % (heads * width)),
    matrix: `${part}.input_projection`,
    symbol: `W_${kind[0].toUpperCase()}`,
  });
}

async function scored(cell: OpenCell) {
  const { app, part, h, t, c: key, changes, steps, config } = cell;
  const [q, k] = [await numbersOf(cell, `${part}.query`, h, t), await numbersOf(cell, `${part}.key`, h, key)];
  const parts = productParts(q, k, (i) => ({
    label: String(i),
    from: [cellAt(`${part}.query`, h, t, i), cellAt(`${part}.key`, h, key, i)],
  }));
  const [columns, inputs] = [["i", "q", "k", "q · k"], { query: q, key: k }];
  const { symbol } = steps.scoreScale;
  if (!symbol) {
    const plain = summed("Σᵢ qᵢ · kᵢ", parts, columns, inputs, "result = query @ key");
    return { ...plain, notes: changes.scale ? [] : [app.t("numbers.scaleOff")] };
  }
  const square = steps.scoreScale.square(config);
  const line = `result = query @ key / ${square} ** 0.5`;
  const made = summed(`Σᵢ qᵢ · kᵢ / ${symbol}`, parts, columns, inputs, line);
  const sum = sumOf(made.terms);
  return {
    ...made,
    numbers: `(${made.numbers}) / √${square}`,
    terms: made.terms.map((term) => term / Math.sqrt(square)),
    steps: [step(`÷ ${symbol}`, `${shown(sum)} / √${square}`, sum / Math.sqrt(square))],
  };
}

/** Returns the tokens of the keys of an attention. */
function keysOf({ app, part }: OpenCell) {
  return app.labels(`${part}.weights`).columns as string[];
}

/**
 * Returns the cells over which the softmax of an attention weight runs, the tokens of these cells, and the index of
 * the weight's own cell.
 */
function softmaxCells({ app, part, t, c, steps, shape: [, rows, columns] }: OpenCell) {
  const { rows: queries, columns: keys } = app.labels(`${part}.weights`);
  const upTo = (length: number) => [...Array(length).keys()];
  return steps.softmax.over === "key"
    ? { places: upTo(columns).map((key) => [t, key]), tokens: keys ?? [], own: c }
    : { places: upTo(rows).map((query) => [query, c]), tokens: queries, own: t };
}

async function weighted(cell: OpenCell) {
  const { app, part, h, t, c, changes } = cell;
  const written = changes.overrides[part]?.findLast(([head, query]) => head === h && query === t);
  if (written) return given(app.t("numbers.given"), written[2][c] ?? 0, app.t("numbers.byHand"));
  const { softmax, blocked, lateMask, scoreScale } = cell.steps;
  const formula = "exp(score − max) / Σⱼ exp(scoreⱼ − max)";
  const { shape, data } = await tensorOf(cell, `${part}.scores`);
  const mask = attentionMask(cell, part, cell);
  const { places, tokens, own } = softmaxCells(cell);
  const scores = places.map((place) => data[placeOf(shape, [h, ...place])]);
  const allowed = places.map((place) => mask.data[placeOf(shape.slice(1), place)] === 1);
  const filled = scores.map((score, at) => (allowed[at] ? score : blocked.of(score)));
  const peak = largestOf(filled);
  if (peak === -Infinity) return given(formula, 0, app.t(`numbers.${softmax.over}.none`));
  const shares = filled.map((score) => Math.exp(score - peak));
  const sum = sumOf(shares);
  const kept = lateMask.masks && !allowed[own] ? 0 : 1;
  const weight = (shares[own] / sum) * kept;
  const last = lateMask.masks ? ` · ${kept}` : "";
  const divided = scoreScale.symbol ? ` / ${scoreScale.symbol}` : "";
  const cells = places.map((place) => cellAt(`${part}.scores`, h, ...place));
  return {
    formula: lateMask.masks ? `${formula} · ${app.t("numbers.mask")}` : formula,
    numbers: `exp(${shown(filled[own])} − ${factor(peak)}) / ${shown(sum)}${last}`,
    terms: [weight],
    parts: shares.map((value, at) => ({
      label: tokens[at],
      left: filled[at],
      value,
      from: [cells[at]],
      own: at === own,
    })),
    columns: [app.t(`numbers.${softmax.over}`), app.t("word.score"), "", "exp(score − max)"],
    total: { label: "Σ exp", value: sum },
    steps: [
      step(app.t("word.score"), `Q · K${divided}`, scores[own], cells[own]),
      step(app.t("numbers.mask"), app.t(allowed[own] ? "numbers.allowed" : blocked.text), filled[own]),
      step("max", "", peak),
      step("exp(score − max)", `exp(${shown(filled[own] - peak)})`, shares[own]),
      step("÷ Σ exp", `${shown(shares[own])} / ${shown(sum)}${last}`, weight),
    ],
    code: {
      inputs: { scores: filled },
      lines: [
        "shares = xp.exp(scores - xp.max(scores))",
        `result = shares[${own}] / xp.sum(shares)${kept ? "" : " * 0  # masked too late"}`,
      ],
    },
  };
}

async function gathered(cell: OpenCell) {
  const { app, part, h, t, c, changes } = cell;
  if (changes.ablated[part]?.includes(h)) return given("0", 0, app.t("numbers.ablated", h));
  const weights = await numbersOf(cell, `${part}.weights`, h, t);
  const all = await tensorOf(cell, `${part}.value`);
  const values = weights.map((_, key) => numbersIn(all, [h, key])[c]);
  const tokens = keysOf(cell);
  const [weight, value] = [app.t("word.weight"), app.t("word.value")];
  const cellsOf = (key: number) => [cellAt(`${part}.weights`, h, t, key), cellAt(`${part}.value`, h, key, c)];
  const parts = productParts(weights, values, (key) => ({ label: tokens[key], from: cellsOf(key) }));
  const columns = [app.t("numbers.key"), weight, value, `${weight} · ${value}`];
  return summed("Σⱼ weightⱼ · valueⱼ", parts, columns, { weights, values }, "result = weights @ values");
}

function joinedHeads(cell: OpenCell) {
  const { app, part, t, c, config } = cell;
  const [head, column] = [Math.floor(c / config.d_v), c % config.d_v];
  return copyOf(cell, `${part}.heads`, [head, t, column], app.t("numbers.joined", head, column));
}

// Feed-forward, residual and norm

async function activated(cell: OpenCell) {
  const {
    part,
    t,
    c,
    config: { activation },
  } = cell;
  const x = (await numbersOf(cell, `${part}.hidden`, t))[c];
  const { of, formula, python } = ACTIVATIONS[activation];
  return {
    ...given(formula, of(x)),
    numbers: formula.replaceAll(/\bx\b/g, factor(x)),
    parts: cellParts([[`${part}.hidden`, x]], [t, c]),
    code: { inputs: { x }, lines: [`result = ${python}`] },
  };
}

/** Returns the explanation of the layer norm of row t of a point; if `norm` is null, γ = 1 and β = 0. */
async function normalised(cell: OpenCell, from: string, norm: string | null): Promise<Made> {
  const { app, t, c } = cell;
  const { deviation } = cell.steps;
  const x = await numbersOf(cell, from, t);
  const [mean, count] = [sumOf(x) / x.length, deviation.count(x.length)];
  const variance = sumOf(x.map((value) => (value - mean) ** 2)) / count;
  const divisor = deviation.of(variance);
  const formula = `(x − mean) / ${deviation.symbol} · γ + β`;
  const scaled = (x[c] - mean) / divisor;
  const steps = [
    step("x", "", x[c], cellAt(from, t, c)),
    step(app.t("numbers.mean"), `Σ x / ${x.length}`, mean),
    step(app.t("numbers.variance"), `Σ (x − mean)² / ${count}`, variance),
    step(deviation.symbol, "ε = 1e-5", divisor),
    step("x̂", `(${shown(x[c])} − ${factor(mean)}) / ${shown(divisor)}`, scaled),
  ];
  if (norm && !cell.weights) return { formula, steps, notes: [noWeights(app)] };
  const gamma = norm ? weightRow(cell, `${norm}.weight`)[c] : 1;
  const beta = norm ? weightRow(cell, `${norm}.bias`)[c] : 0;
  const stretched = { label: "x̂ · γ", left: scaled, right: gamma, value: scaled * gamma };
  const parts = [stretched, { label: "β", value: beta }];
  const made = summed(
    formula,
    parts,
    ["", "x̂", "γ", ""],
    { x, gamma, beta },
    `variance = xp.sum((x - x.mean()) ** 2) / ${count}`,
    `deviation = ${deviation.python}`,
    `result = (x[${c}] - x.mean()) / deviation * gamma + beta`,
  );
  return { ...made, steps, stepsFirst: true };
}

const ownNorm = ({ part }: OpenCell) => `${part}_residual.norm`;

async function addedUp(cell: OpenCell) {
  const { part, preNorm, t, c } = cell;
  const [input, output] = [`${part}.input`, `${part}.output`];
  const sublayer = preNorm ? `Sublayer(${NORM}(x))` : "Sublayer(x)";
  if (!cell.steps.shortcut.normed) return pairOf(cell, `x + ${sublayer}`, input, output);
  if (preNorm) return pairOf(cell, `${NORM}(x) + ${sublayer}`, `${part}.normed`, output);
  const { steps, terms } = await normalised(cell, input, ownNorm(cell));
  const y = (await numbersOf(cell, output, t))[c];
  const a = terms ? sumOf(terms) : cell.result - y;
  const parts = [{ label: `${NORM}(x)`, value: a }, ...cellParts([[output, y]], [t, c])];
  const made = summed(`${NORM}(x) + ${sublayer}`, parts, [], { a, y }, "result = a + y");
  return { ...made, steps, stepsFirst: true };
}

/** Returns the explanation of a stack's output. A stack with a final norm normalises its output once more. */
function stackEnd(cell: OpenCell) {
  const from = streamBefore(cell, cell.stack);
  const kind = cell.steps.finalNorm(cell.config);
  if (kind === "none") return copyOf(cell, from, [cell.t, cell.c]);
  return normalised(cell, from, kind === "learned" ? `${cell.stack}.norm` : null);
}

// The next word

async function logProbability(cell: OpenCell) {
  const { app, t, c, trace } = cell;
  const { of, symbol, python } = cell.steps.wordScores;
  const logits = await numbersOf(cell, "logits", t);
  const values = Array.from(of(tensor([logits.length], Float32Array.from(logits))).data);
  const known = trace.words?.ids[t] ?? [...logits.keys()];
  const rest = trace.words?.rest[t] ?? 0;
  const peak = largestOf(known.map((word) => values[word]));
  const sum = sumOf(known.map((word) => Math.exp(values[word] - peak)));
  const logSum = peak + Math.log(sum / (1 - rest));
  const order = known.toSorted((a, b) => logits[b] - logits[a]);
  const words = [...new Set([...order.slice(0, LIKELIEST_WORDS), c])];
  const tokens = app.engine.tokens("target", words);
  const inputs: Code["inputs"] = { logits: known.map((word) => logits[word]), ...(trace.words && { rest }) };
  const share = trace.words ? " / (1 - rest)" : "";
  const probability = (word: number) => Math.exp(values[word] - logSum);
  const own = (word: number, place: number) => ({
    label: tokens[place],
    left: logits[word],
    value: probability(word),
    from: [cellAt("logits", t, word)],
    own: word === c,
  });
  return {
    formula: `${symbol} − log Σⱼ exp(${symbol}ⱼ)`,
    numbers: `${shown(values[c])} − ${factor(logSum)}`,
    terms: [values[c], -logSum],
    parts: [...words.map(own), ...(trace.words ? [{ label: app.t("numbers.otherWords"), value: rest }] : [])],
    columns: [app.t("numbers.word"), "logit", "", app.t("numbers.probability")],
    steps: [
      step("logit", "", logits[c], cellAt("logits", t, c)),
      ...(python.length > 0 ? [step(symbol, "", values[c])] : []),
      step("log Σ exp", wordsText(app, known.length, logits.length, rest), logSum),
      step("log p", `${shown(values[c])} − ${factor(logSum)}`, values[c] - logSum),
      step(app.t("numbers.probability"), "exp(log p)", probability(c)),
    ],
    code: {
      inputs,
      lines: [
        ...python,
        "peak = xp.max(logits)",
        `result = logits[${known.indexOf(c)}] - peak - xp.log(xp.sum(xp.exp(logits - peak))${share})`,
      ],
    },
  };
}

/**
 * Returns a text that says which words a softmax runs over. A recording contains only some words, and the total
 * probability of all other words.
 */
function wordsText(app: Explained, known: number, all: number, rest: number) {
  if (known === all) return app.t("numbers.words", all);
  return app.t("numbers.words.recorded", all, known, percentText(rest));
}

const MAKERS: Record<string, (cell: OpenCell) => Made | Promise<Made>> = {
  embedding: embedded,
  positions: positioned,
  placed: (cell) => pairOf(cell, "embedding + position", `${cell.part}.embedding`, `${cell.part}.positions`),
  input: (cell) => copyOf(cell, streamBefore(cell, cell.part), [cell.t, cell.c]),
  query: projected,
  key: projected,
  value: projected,
  scores: scored,
  weights: weighted,
  heads: gathered,
  joined: joinedHeads,
  output: (cell) => matrixOf(cell, `${cell.part}.joined`, "output_projection", "W_O"),
  hidden: (cell) => matrixOf(cell, readBy(cell), "expand", "W₁"),
  activated,
  contracted: (cell) => matrixOf(cell, `${cell.part}.activated`, "contract", "W₂"),
  added: addedUp,
  normed: (cell) => normalised(cell, `${cell.part}.${cell.preNorm ? "input" : "added"}`, ownNorm(cell)),
  end: stackEnd,
  logits: (cell) =>
    product(cell, {
      from: "decoder.output",
      matrix: "output",
      bias: cell.config.output_bias,
      symbol: "W_out",
    }),
  log_probs: logProbability,
};
