// What transformers.js translates with a folder: reads {"folder", "texts", "limits"}, prints {"texts"} as JSON.
import { readFileSync } from "node:fs";
import { basename, dirname } from "node:path";

const { env, pipeline } = await import(`${process.argv[2]}/@huggingface/transformers/dist/transformers.node.mjs`);
const { folder, texts, limits } = JSON.parse(readFileSync(0, "utf8"));
env.localModelPath = dirname(folder);
env.allowRemoteModels = false;
const translator = await pipeline("translation", basename(folder), { device: "cpu" });
const written = [];
for (const [place, text] of texts.entries()) {
  const [{ translation_text: translation }] = await translator(text, { max_new_tokens: limits[place] });
  written.push(translation);
}
console.log(JSON.stringify({ texts: written }));
