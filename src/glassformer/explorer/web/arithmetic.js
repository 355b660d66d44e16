// How any number of the forward pass was made: its formula, its terms, and the cells that these come from.
//
// All of it is taken from the trace on the page and from the model's weights, under the changes that made the
// trace. Each kind of point has a maker, which returns what `arithmetic` describes.
import { numberText } from "./dom.js";
import { pointNames } from "./model.js";
import { ACTIVATIONS, softmax } from "./tensor.js";

const EPSILON = 1e-5;
const LIKELIEST_WORDS = 12;

/** The classic mistakes that act at each kind of point, and the points to which some are confined. */
const ACTING = {
  embedding: ["no_embedding_scale"],
  positions: ["doubled_exponent"],
  input: ["norm_order"],
  query: ["no_transpose"],
  key: ["decoder_keys", "no_transpose"],
  value: ["decoder_keys", "no_transpose"],
  scores: ["no_scale", "scale_d_model"],
  log_probs: ["double_softmax"],
  weights: ["mask_zero", "mask_after_softmax", "target_padding_mask", "no_causal_mask"],
  added: ["residual_normed"],
  normed: ["norm_order", "unbiased_norm"],
  end: ["norm_order", "unbiased_norm"],
};
const CONFINED = { decoder_keys: /cross/, target_padding_mask: /cross/, no_causal_mask: /^decoder.*self/ };

/** What an explanation needs and this page does not have. */
class NotHere extends Error {}

/**
 * Returns how a number was made.
 *
 * result: the traced number. terms: numbers whose sum it is; `difference` is what float32 rounded off.
 * formula, numbers: text, with symbols and with numbers. parts: the table [{label, left, right, value,
 * from}], where `from` names the cells {name, index} of left and right, or of the value. steps: [{label,
 * text, value, from}] beside the table. notes: what was changed here. code: {inputs, lines}, for snippets.
 */
export async function arithmetic(app, name, index) {
  const cell = await openCell(app, name, index);
  const made = patchedIn(cell) ?? (await explained(cell));
  const { result } = cell;
  const terms = made.terms ?? [result];
  const notes = [...mistakesAt(cell), ...(made.notes ?? [])];
  const plain = { name, index: [...index], result, formula: "", parts: [], steps: [], columns: [] };
  return { ...plain, ...made, terms, difference: sumOf(terms) - result, notes };
}

async function explained(cell) {
  try {
    return await MAKERS[cell.kind](cell);
  } catch (error) {
    if (error instanceof NotHere) return { notes: [error.message] };
    throw error;
  }
}

/** Returns what there is to know of a cell: where it stands, its number, and what made the trace. */
async function openCell(app, name, index) {
  const { trace, changes, sourceIds, targetIds } = app.result.current;
  if (!trace.has(name)) {
    const wanted = `one of points(), such as "${trace.names[0]}"`;
    throw new Error(`there is no point ${JSON.stringify(name)}: expected ${wanted}`);
  }
  const tensor = await trace.get(name);
  checkIndex(name, index, tensor.shape);
  const makes = (mistake) => changes.mistakes.includes(mistake);
  const [t, c] = index.slice(-2);
  return {
    app,
    name,
    index,
    h: index.at(-3),
    t,
    c,
    trace,
    changes,
    sourceIds,
    targetIds,
    makes,
    config: app.config,
    stack: /^(source|encoder)/.test(name) ? "encoder" : "decoder",
    part: name.slice(0, Math.max(name.lastIndexOf("."), 0)),
    kind: kindOf(name),
    shape: tensor.shape,
    result: tensor.data[placeOf(tensor.shape, index)],
    weights: app.engine.model ? await app.engine.model(changes.checkpoint) : null,
    preNorm: (app.config.norm === "pre") !== makes("norm_order"),
  };
}

function checkIndex(name, index, shape) {
  const inside = (place, axis) => Number.isInteger(place) && place >= 0 && place < shape[axis];
  if (Array.isArray(index) && index.length === shape.length && index.every(inside)) return;
  const wanted = `${shape.length} whole numbers, from 0 and below ${shape.join(", ")}`;
  throw new Error(`the index of ${name} is ${JSON.stringify(index)}: expected a list of ${wanted}`);
}

function kindOf(name) {
  if (/^(source|target)\.input$/.test(name)) return "placed";
  if (/^(encoder|decoder)\.output$/.test(name)) return "end";
  return name.endsWith("feed_forward.output") ? "contracted" : name.replace(/^.*\./, "");
}

function mistakesAt({ app, kind, name, makes }) {
  const acting = (ACTING[kind] ?? []).filter((id) => makes(id) && (CONFINED[id]?.test(name) ?? true));
  return acting.map((id) => app.t("numbers.changed", app.t(`mistake.${id}`)));
}

/** Returns the explanation of a cell that comes from another sentence, or null. */
function patchedIn({ name, index, h, t, c, changes, result, app }) {
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

const sumOf = (terms) => terms.reduce((sum, term) => sum + term, 0);
const largestOf = (values) => values.reduce((most, value) => Math.max(most, value), -Infinity);
const placeOf = (shape, index) => index.reduce((place, at, axis) => place * shape[axis] + at, 0);
const cellAt = (name, ...index) => ({ name, index });

/** Returns the row of a point that these leading indices choose, as plain numbers. */
async function numbersOf(cell, name, ...lead) {
  return numbersIn(await tensorOf(cell, name), lead);
}

function tensorOf({ app, trace }, name) {
  if (!trace.has(name)) throw new NotHere(app.t("numbers.notRecorded", name));
  return trace.get(name);
}

function numbersIn({ shape, data }, lead) {
  const start = placeOf(shape, lead) * shape.at(-1);
  return Array.from(data.subarray(start, start + shape.at(-1)));
}

/** Returns a row of a weight of the model; pages of large models and recordings have none. */
function weightRow({ app, weights }, name, ...lead) {
  if (!weights) throw new NotHere(app.t("numbers.noWeights"));
  return numbersIn(weights.weight(name), lead);
}

// Writing

const shown = (value) => numberText(value, 4);
const factor = (value) => (value < 0 ? `(${shown(value)})` : shown(value));
const step = (label, text, value, from) => ({ label, text, value, from: from && [from] });

/** Returns the explanation of a number that is no sum. */
function given(formula, value, note = null) {
  const code = { inputs: { result: value }, lines: [] };
  return { formula, terms: [value], code, notes: note ? [note] : [] };
}

/** Returns the explanation of Σ parts. */
function summed(formula, parts, columns, inputs, ...lines) {
  const text = ({ left, right, value }) =>
    (right === undefined ? [value] : [left, right]).map(factor).join(" · ");
  const numbers = parts.slice(0, 3).map(text).join(" + ") + (parts.length > 3 ? " + …" : "");
  const terms = parts.map(({ value }) => value);
  const total = { label: "Σ", value: sumOf(terms) };
  return { formula, numbers, parts, columns, terms, total, code: { inputs, lines } };
}

/** Returns the parts of Σ left · right; `name(i)` gives the i-th its label and its cells. */
function productParts(lefts, rights, name) {
  return lefts.map((left, i) => ({ ...name(i), left, right: rights[i], value: left * rights[i] }));
}

/** Returns the parts of a sum of cells that have one index: [point, number] pairs. */
function cellParts(pairs, index) {
  return pairs.map(([name, value]) => ({
    label: name.replace(/^.*\./, ""),
    value,
    from: [cellAt(name, ...index)],
  }));
}

/** Returns the explanation of a number that stands elsewhere, too. */
async function copyOf(cell, name, index, formula = name) {
  const value = (await numbersOf(cell, name, ...index.slice(0, -1))).at(index.at(-1));
  return { ...given(formula, value), parts: cellParts([[name, value]], index) };
}

/** Returns the explanation of a + b, two points that have the cell's own index. */
async function pairOf(cell, formula, first, second) {
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
async function product(cell, { from, t = cell.t, matrix, row = cell.c, bias = true, symbol }) {
  const x = await numbersOf(cell, from, t);
  const formula = `Σᵢ xᵢ · ${symbol}[${row}, i]${bias ? ` + b[${row}]` : ""}`;
  const name = (i) => ({ label: String(i), from: [cellAt(from, t, i)] });
  if (!cell.weights) {
    const parts = x.map((left, i) => ({ ...name(i), left }));
    return { formula, parts, columns: ["i", "x"], notes: [cell.app.t("numbers.noWeights")] };
  }
  const w = weightRow(cell, `${matrix}.weight`, row);
  const b = bias ? weightRow(cell, `${matrix}.bias`)[row] : 0;
  const parts = [...productParts(x, w, name), ...(bias ? [{ label: "b", value: b }] : [])];
  const columns = ["i", "x", "W", "x · W"];
  if (!bias) return summed(formula, parts, columns, { x, w }, "result = x @ w");
  return summed(formula, parts, columns, { x, w, b }, "result = x @ w + b");
}

/** Returns the explanation of a matrix of the cell's own sub-layer. */
function matrixOf(cell, from, name, symbol) {
  return product(cell, { from, matrix: `${cell.part}.${name}`, symbol });
}

// The makers: what enters

function embedded(cell) {
  const { c, t, makes, part, config } = cell;
  const id = (part === "source" ? cell.sourceIds : cell.targetIds)[t] ?? config.pad_id;
  const entry = weightRow(cell, `${part}.tokens.weight`, id)[c];
  if (makes("no_embedding_scale")) return given(`E[${id}, ${c}]`, entry);
  const scale = Math.sqrt(config.d_model);
  return {
    ...given(`E[${id}, ${c}] · √d_model`, entry * scale),
    numbers: `${shown(entry)} · √${config.d_model}`,
    code: { inputs: { entry }, lines: [`result = entry * ${config.d_model} ** 0.5`] },
  };
}

function positioned(cell) {
  const {
    t,
    c,
    config: { positions, d_model: width },
    changes,
    makes,
    app,
  } = cell;
  if (positions === "none" || !changes.positions) return given("0", 0, app.t("numbers.positionsOff"));
  if (positions === "learned") {
    return given(`P[${t}, ${c}]`, weightRow(cell, `${cell.part}.positions.table`, t)[c]);
  }
  const half = Math.ceil(width / 2);
  const [i, odd] = positions === "interleaved" ? [c >> 1, c & 1] : [c % half, Number(c >= half)];
  const count = makes("doubled_exponent") ? 2 * (2 * i + odd) : 2 * i;
  const angle = t * 10000 ** (-count / width);
  const wave = odd ? "cos" : "sin";
  const exponent = !makes("doubled_exponent") ? "2i" : odd ? "2(2i + 1)" : "2 · 2i";
  return {
    ...given(`${wave}(pos / 10000^(${exponent} / d_model))`, Math[wave](angle)),
    numbers: `${wave}(${t} / 10000^(${count} / ${width})) = ${wave}(${shown(angle)})`,
    code: { inputs: {}, lines: [`result = math.${wave}(${t} / 10000 ** (${count} / ${width}))`] },
  };
}

/** Returns which point a sub-layer's input or a stack's output comes from. */
function streamBefore({ stack, config, preNorm }, part) {
  const names = pointNames(config).filter((name) => name.startsWith(`${stack}.layers`));
  const inputs = names.filter((name) => name.endsWith(".input"));
  const place = part === stack ? inputs.length : inputs.indexOf(`${part}.input`);
  if (place === 0) return stack === "encoder" ? "source.input" : "target.input";
  return inputs[place - 1].replace(/input$/, preNorm ? "added" : "normed");
}

// Attention

/** Returns the point that a sub-layer reads. */
const readBy = ({ part, preNorm }) => `${part}.${preNorm ? "normed" : "input"}`;

/** Returns the explanation of a query, key or value: its row in the one matrix [W_Q; W_K; W_V]. */
function projected(cell) {
  const {
    part,
    kind,
    h,
    t,
    c,
    shape: [, length, width],
    makes,
    config,
  } = cell;
  const ofMemory = part.endsWith("cross_attention") && kind !== "query" && !makes("decoder_keys");
  const begin = { query: 0, key: 1, value: 2 }[kind] * config.heads * config.d_k;
  const flat = (h * length + t) * width + c; // without the transpose, heads are cut from the flat numbers
  const joined = config.heads * width;
  const cut = makes("no_transpose");
  const [from, column] = cut ? [Math.floor(flat / joined), flat % joined] : [t, h * width + c];
  return product(cell, {
    from: ofMemory ? "encoder.output" : readBy(cell),
    t: from,
    row: begin + column,
    matrix: `${part}.input_projection`,
    symbol: `W_${kind[0].toUpperCase()}`,
  });
}

/** Returns [d, its name] where scores are divided by √d, or null. */
function scaling({ makes, changes, config }) {
  if (makes("no_scale") || !changes.scale) return null;
  return makes("scale_d_model") ? [config.d_model, "√d_model"] : [config.d_k, "√d_k"];
}

async function scored(cell) {
  const { app, part, h, t, c: key, changes } = cell;
  const [q, k] = [await numbersOf(cell, `${part}.query`, h, t), await numbersOf(cell, `${part}.key`, h, key)];
  const parts = productParts(q, k, (i) => ({
    label: String(i),
    from: [cellAt(`${part}.query`, h, t, i), cellAt(`${part}.key`, h, key, i)],
  }));
  const [columns, inputs] = [["i", "q", "k", "q · k"], { query: q, key: k }];
  if (!scaling(cell)) {
    const plain = summed("Σᵢ qᵢ · kᵢ", parts, columns, inputs, "result = query @ key");
    return { ...plain, notes: changes.scale ? [] : [app.t("numbers.scaleOff")] };
  }
  const [square, symbol] = scaling(cell);
  const line = `result = query @ key / ${square} ** 0.5`;
  const made = summed(`Σᵢ qᵢ · kᵢ / ${symbol}`, parts, columns, inputs, line);
  const sum = made.total.value;
  return {
    ...made,
    numbers: `(${made.numbers}) / √${square}`,
    terms: made.terms.map((term) => term / Math.sqrt(square)),
    steps: [step(`÷ ${symbol}`, `${shown(sum)} / √${square}`, sum / Math.sqrt(square))],
  };
}

/** Returns whether a cell's query may look at a key. */
function mayLook({ part, t, changes, makes, config, sourceIds, targetIds }, key) {
  const edit = changes.masks[part]?.findLast((cell) => cell[0] === t && cell[1] === key);
  if (edit) return edit[2];
  const [cross, decoder] = [part.endsWith("cross_attention"), part.startsWith("decoder")];
  const ofTarget = cross ? makes("target_padding_mask") || makes("decoder_keys") : decoder;
  const id = (ofTarget ? targetIds : sourceIds)[key] ?? config.pad_id;
  return id !== config.pad_id && (cross || !decoder || makes("no_causal_mask") || key <= t);
}

async function weighted(cell) {
  const { app, part, h, t, c: key, makes, changes } = cell;
  const written = changes.overrides[part]?.findLast(([head, query]) => head === h && query === t);
  if (written) return given(app.t("numbers.given"), written[2][key] ?? 0, app.t("numbers.byHand"));
  const formula = "exp(score − max) / Σⱼ exp(scoreⱼ − max)";
  const scores = await numbersOf(cell, `${part}.scores`, h, t);
  const [zero, late] = [makes("mask_zero"), makes("mask_after_softmax")];
  const filled = scores.map((score, at) => (mayLook(cell, at) ? score : zero ? 0 : late ? score : -Infinity));
  const peak = largestOf(filled);
  if (peak === -Infinity) return given(formula, 0, app.t("numbers.noKey"));
  const shares = filled.map((score) => Math.exp(score - peak));
  const [sum, allowed, tokens] = [sumOf(shares), mayLook(cell, key), app.labels(cell.name).columns];
  const kept = late && !allowed ? 0 : 1;
  const weight = (shares[key] / sum) * kept;
  const scale = scaling(cell);
  const last = late ? ` · ${kept}` : "";
  const cellOf = (at) => cellAt(`${part}.scores`, h, t, at);
  const mask = allowed ? "allowed" : zero ? "blockedZero" : late ? "blockedLate" : "blocked";
  return {
    formula: late ? `${formula} · ${app.t("numbers.mask")}` : formula,
    numbers: `exp(${shown(filled[key])} − ${factor(peak)}) / ${shown(sum)}${last}`,
    terms: [weight],
    parts: shares.map((value, at) => ({
      label: tokens[at],
      left: filled[at],
      value,
      from: [cellOf(at)],
      own: at === key,
    })),
    columns: [app.t("numbers.key"), app.t("word.score"), "", "exp(score − max)"],
    total: { label: "Σ exp", value: sum },
    steps: [
      step(app.t("word.score"), `Q · K${scale ? ` / ${scale[1]}` : ""}`, scores[key], cellOf(key)),
      step(app.t("numbers.mask"), app.t(`numbers.${mask}`), filled[key]),
      step("max", "", peak),
      step("exp(score − max)", `exp(${shown(filled[key] - peak)})`, shares[key]),
      step("÷ Σ exp", `${shown(shares[key])} / ${shown(sum)}${last}`, weight),
    ],
    code: {
      inputs: { scores: filled },
      lines: [
        "shares = xp.exp(scores - xp.max(scores))",
        `result = shares[${key}] / xp.sum(shares)${kept ? "" : " * 0  # masked too late"}`,
      ],
    },
  };
}

async function gathered(cell) {
  const { app, part, h, t, c, changes } = cell;
  if (changes.ablated[part]?.includes(h)) return given("0", 0, app.t("numbers.ablated", h));
  const weights = await numbersOf(cell, `${part}.weights`, h, t);
  const all = await tensorOf(cell, `${part}.value`);
  const values = weights.map((_, key) => numbersIn(all, [h, key])[c]);
  const tokens = app.labels(`${part}.weights`).columns;
  const [weight, value] = [app.t("word.weight"), app.t("word.value")];
  const cellsOf = (key) => [cellAt(`${part}.weights`, h, t, key), cellAt(`${part}.value`, h, key, c)];
  const parts = productParts(weights, values, (key) => ({ label: tokens[key], from: cellsOf(key) }));
  const columns = [app.t("numbers.key"), weight, value, `${weight} · ${value}`];
  return summed("Σⱼ weightⱼ · valueⱼ", parts, columns, { weights, values }, "result = weights @ values");
}

function joinedHeads(cell) {
  const { app, part, t, c, config } = cell;
  const [head, column] = [Math.floor(c / config.d_v), c % config.d_v];
  return copyOf(cell, `${part}.heads`, [head, t, column], app.t("numbers.joined", head, column));
}

// Feed-forward, residual and norm

async function activated(cell) {
  const {
    part,
    t,
    c,
    config: { activation },
  } = cell;
  const x = (await numbersOf(cell, `${part}.hidden`, t))[c];
  const [formula, line] = {
    relu: ["max(0, x)", "max(0.0, x)"],
    gelu: ["x / 2 · (1 + erf(x / √2))", "x / 2 * (1 + math.erf(x / 2 ** 0.5))"],
    silu: ["x / (1 + exp(−x))", "x / (1 + math.exp(-x))"],
  }[activation];
  return {
    ...given(formula, ACTIVATIONS[activation](x)),
    numbers: formula.replaceAll(/x(?!p)/g, factor(x)),
    parts: cellParts([[`${part}.hidden`, x]], [t, c]),
    code: { inputs: { x }, lines: [`result = ${line}`] },
  };
}

/** Returns the explanation of the layer norm of row t of a point; `norm` null stands for γ = 1 and β = 0. */
async function normalised(cell, from, norm) {
  const { app, t, c, makes } = cell;
  const x = await numbersOf(cell, from, t);
  const unbiased = makes("unbiased_norm");
  const [width, mean, count] = [x.length, sumOf(x) / x.length, x.length - Number(unbiased)];
  const variance = sumOf(x.map((value) => (value - mean) ** 2)) / count;
  const divisor = unbiased ? Math.sqrt(variance) + EPSILON : Math.sqrt(variance + EPSILON);
  const root = unbiased ? "(√variance + ε)" : "√(variance + ε)";
  const formula = `(x − mean) / ${root} · γ + β`;
  const scaled = (x[c] - mean) / divisor;
  const steps = [
    step("x", "", x[c], cellAt(from, t, c)),
    step(app.t("numbers.mean"), `Σ x / ${width}`, mean),
    step(app.t("numbers.variance"), `Σ (x − mean)² / ${count}`, variance),
    step(root, "ε = 1e-5", divisor),
    step("x̂", `(${shown(x[c])} − ${factor(mean)}) / ${shown(divisor)}`, scaled),
  ];
  if (norm && !cell.weights) return { formula, steps, notes: [app.t("numbers.noWeights")] };
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
    `deviation = ${unbiased ? "variance ** 0.5 + 1e-5" : "(variance + 1e-5) ** 0.5"}`,
    `result = (x[${c}] - x.mean()) / deviation * gamma + beta`,
  );
  return { ...made, steps, stepsFirst: true };
}

const ownNorm = ({ part }) => `${part}_residual.norm`;

async function addedUp(cell) {
  const { part, makes, preNorm, t, c } = cell;
  const [input, output] = [`${part}.input`, `${part}.output`];
  const sublayer = preNorm ? "Sublayer(LayerNorm(x))" : "Sublayer(x)";
  if (!makes("residual_normed")) return pairOf(cell, `x + ${sublayer}`, input, output);
  if (preNorm) return pairOf(cell, `LayerNorm(x) + ${sublayer}`, `${part}.normed`, output);
  const { steps, terms } = await normalised(cell, input, ownNorm(cell));
  const y = (await numbersOf(cell, output, t))[c];
  const a = terms ? sumOf(terms) : cell.result - y;
  const parts = cellParts(
    [
      [input, a],
      [output, y],
    ],
    [t, c],
  );
  parts[0].label = "LayerNorm(x)";
  const made = summed(`LayerNorm(x) + ${sublayer}`, parts, [], { a, y }, "result = a + y");
  return { ...made, steps, stepsFirst: true };
}

/** Returns the explanation of what leaves a stack: in pre-norm, normalised once more. */
function stackEnd(cell) {
  const from = streamBefore(cell, cell.stack);
  if (!cell.preNorm) return copyOf(cell, from, [cell.t, cell.c]);
  return normalised(cell, from, cell.config.norm === "pre" ? `${cell.stack}.norm` : null);
}

// The next word

async function logProbability(cell) {
  const { app, t, c, makes } = cell;
  const logits = await numbersOf(cell, "logits", t);
  const double = makes("double_softmax");
  const once = () => Array.from(softmax({ shape: [logits.length], data: Float32Array.from(logits) }).data);
  const values = double ? once() : logits;
  const peak = largestOf(values);
  const logSum = peak + Math.log(sumOf(values.map((value) => Math.exp(value - peak))));
  const order = [...logits.keys()].sort((a, b) => logits[b] - logits[a]);
  const words = [...new Set([...order.slice(0, LIKELIEST_WORDS), c])];
  const tokens = app.engine.tokens("target", words);
  const probability = (word) => Math.exp(values[word] - logSum);
  const symbol = double ? "softmax(logit)" : "logit";
  const twice = ["logits = xp.exp(logits - xp.max(logits))", "logits = logits / xp.sum(logits)  # too early"];
  const own = (word, place) => ({
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
    parts: words.map(own),
    columns: [app.t("numbers.word"), "logit", "", app.t("numbers.probability")],
    steps: [
      step("logit", "", logits[c], cellAt("logits", t, c)),
      ...(double ? [step(symbol, "", values[c])] : []),
      step("log Σ exp", app.t("numbers.words", logits.length), logSum),
      step("log p", `${shown(values[c])} − ${factor(logSum)}`, values[c] - logSum),
      step(app.t("numbers.probability"), "exp(log p)", probability(c)),
    ],
    code: {
      inputs: { logits },
      lines: [
        ...(double ? twice : []),
        "peak = xp.max(logits)",
        `result = logits[${c}] - peak - xp.log(xp.sum(xp.exp(logits - peak)))`,
      ],
    },
  };
}

const MAKERS = {
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
  logits: (cell) => product(cell, { from: "decoder.output", matrix: "output", bias: false, symbol: "W_out" }),
  log_probs: logProbability,
};
