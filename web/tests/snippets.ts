// Prints the snippet of one number of each point, which a test in Python then runs. Reads the model and the changes
// from stdin.
import { text } from "node:stream/consumers";
import { arithmetic } from "../engine/arithmetic.ts";
import { createEngine } from "../engine/engine.ts";
import { snippet } from "../engine/snippet.ts";
import { explainedOf } from "./explained.ts";
import { asked } from "./traces.ts";

/** An explanation that has code. */
type Coded = Parameters<typeof snippet>[0];

const { payload, sentence, changes, library } = JSON.parse(await text(process.stdin));
const engine = await createEngine(payload);
const made = [];
for (const one of changes) {
  const app = await explainedOf(engine, sentence, asked(one));
  const { trace } = app.result.current;
  for (const name of trace.names) {
    const { shape } = await trace.get(name);
    const index = shape.map((length, axis) => (7 * axis + 2) % length);
    if (trace.words && name.startsWith("log")) index[1] = trace.words.ids[index[0]][3];
    const explained = await arithmetic(app, name, index);
    // If a matrix was not recorded, products with it have no code.
    if (explained.code) made.push([explained.result, snippet(explained as Coded, library)]);
  }
}
process.stdout.write(JSON.stringify(made));
