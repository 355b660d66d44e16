import js from "@eslint/js";
import globals from "globals";

/** The engine runs in Node and in a browser: globals of only one of them are undefined there. */
const PLACES = [
  { files: ["engine/**"], languageOptions: { globals: globals["shared-node-browser"] } },
  { files: ["ui/**", "translate/**"], languageOptions: { globals: globals.browser } },
  { files: ["*.js", "tests/**"], languageOptions: { globals: globals.node } },
];

export default [
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  ...PLACES,
  {
    files: ["engine/**"],
    rules: { "no-restricted-imports": ["error", { patterns: ["../ui/*", "node:*"] }] },
  },
  {
    rules: {
      eqeqeq: "error",
      "no-restricted-properties": [
        "error",
        // Text stays text: nothing on the page becomes markup or code at run time.
        ...["innerHTML", "outerHTML", "insertAdjacentHTML"].map((property) => ({ property })),
        { object: "document", property: "write" },
      ],
      "no-eval": "error",
      "no-new-func": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
    },
  },
];
