// The engine's modules as one script, which lets tests/browser compute with the engine in a browser.
export * from "../engine/changes.ts";
export * from "../engine/engine.ts";
export * from "../engine/search.ts";
export * from "../engine/tensor.ts";
export * from "../engine/tokenizers.ts";
