// Prints the snippet of one number of each point; a test in Python runs them. The model and changes come from stdin.
import { text } from "node:stream/consumers";
import { arithmetic } from "../engine/arithmetic.js";
import { createEngine } from "../engine/engine.js";
import { snippet } from "../engine/snippet.js";
import { explainedOf } from "./explained.js";
import { asked } from "./traces.js";

/** @typedef {Parameters<typeof snippet>[0]} Coded an explanation that has code */

const { payload, sentence, changes, library } = JSON.parse(await text(process.stdin));
const engine = await createEngine(payload);
const made = [];
for (const one of changes) {
  const app = await explainedOf(engine, sentence, asked(one));
  const { trace } = app.result.current;
  for (const name of trace.names) {
    const { shape } = await trace.get(name);
    const index = shape.map((length, axis) => (7 * axis + 2) % length);
    const explained = /** @type {Coded} */ (await arithmetic(app, name, index));
    made.push([explained.result, snippet(explained, library)]);
  }
}
process.stdout.write(JSON.stringify(made));
