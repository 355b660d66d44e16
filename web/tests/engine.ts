// The engine's modules as one script, with which the repository's tests/browser compute in a browser.
export * from "../engine/changes.ts";
export * from "../engine/engine.ts";
export * from "../engine/search.ts";
export * from "../engine/tensor.ts";
export * from "../engine/tokenizers.ts";
