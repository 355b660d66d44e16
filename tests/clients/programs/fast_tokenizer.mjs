// What the tokenizers of transformers.js give: reads {"tokenizer", "texts", "ids"}, prints {"ids", "texts"} as JSON.
import { readFileSync } from "node:fs";

const { Tokenizer } = await import(`${process.argv[2]}/@huggingface/tokenizers/dist/tokenizers.mjs`);
const asked = JSON.parse(readFileSync(0, "utf8"));
const settings = { unk_token: "<unk>", clean_up_tokenization_spaces: false };
const tokenizer = new Tokenizer(asked.tokenizer, settings);
const ids = asked.texts.map((text) => tokenizer.encode(text).ids);
const texts = asked.ids.map((some) => tokenizer.decode(some, { skip_special_tokens: true }));
console.log(JSON.stringify({ ids, texts }));
