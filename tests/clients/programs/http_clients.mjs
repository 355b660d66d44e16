// Ask a service by the clients of Node: translate and deepl-node.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { url, texts, key } = JSON.parse(readFileSync(0, "utf8"));
const { default: translate } = await import(pathToFileURL(`${folder}/translate/index.min.js`));
const deepl = createRequire(`${folder}/`)("deepl-node");

translate.engine = "libre";
translate.url = `${url}/translate`;
translate.key = key;
translate.from = "en";
const client = new deepl.DeepLClient(key, { serverUrl: url, maxRetries: 0 });
const answers = await client.translateText(texts, "en", "es");
const usage = await client.getUsage();
const found = {
  translate: [],
  "deepl-node": answers.map((one) => one.text),
  languages: (await client.getTargetLanguages()).map((one) => one.code),
  usage: usage.character.count,
};
for (const text of texts) found.translate.push(await translate(text, "es"));
console.log(JSON.stringify(found));
