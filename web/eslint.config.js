import js from "@eslint/js";
import globals from "globals";
import { configs } from "typescript-eslint";

/** Globals that only Node or only browsers have. The engine runs in both, so it must not use them. */
const DOM_TYPES = [
  "CanvasTextAlign",
  "HTMLElementTagNameMap",
  "NodeListOf",
  "RequestInit",
  "SVGElementTagNameMap",
].map((name) => [name, "readonly"]);
const PAGE = { ...globals.browser, ...Object.fromEntries(DOM_TYPES) };
const PLACES = [
  { files: ["engine/**"], languageOptions: { globals: globals["shared-node-browser"] } },
  { files: ["ui/**", "translate/**"], languageOptions: { globals: PAGE } },
  { files: ["*.{js,ts}", "tests/**"], languageOptions: { globals: globals.node } },
];

export default [
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  ...configs.recommended,
  ...PLACES,
  {
    files: ["engine/**"],
    rules: { "no-restricted-imports": ["error", { patterns: ["../ui/*", "node:*"] }] },
  },
  {
    rules: {
      "@typescript-eslint/no-explicit-any": "off",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      eqeqeq: "error",
      "no-restricted-properties": [
        "error",
        // Text must remain text: nothing on the page is turned into markup or code at run time.
        ...["innerHTML", "outerHTML", "insertAdjacentHTML"].map((property) => ({ property })),
        { object: "document", property: "write" },
      ],
      "no-eval": "error",
      "no-new-func": "error",
      "no-undef": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
    },
  },
];
