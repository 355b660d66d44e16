// Bundles the explorer into the one committed file that Python reads. With --check, only compares that file.
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { build, transform } from "esbuild";

const BUNDLE = new URL("../src/glassformer/explorer/explorer.js", import.meta.url);

/** @type {import("esbuild").Plugin} */
const cssAsText = {
  name: "css-as-text",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const css = await readFile(path, "utf8");
      const { code } = await transform(css, { loader: "css", minify: true, charset: "utf8" });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

/** Returns the bundle: an ES module that imports nothing, the same bytes on every machine. */
async function bundled() {
  const { outputFiles } = await build({
    entryPoints: ["ui/explorer.js"],
    absWorkingDir: import.meta.dirname,
    bundle: true,
    minify: true,
    write: false,
    target: "es2022",
    charset: "utf8",
    plugins: [cssAsText],
    // One expression whose exports keep their names: a page calls `mount` after it, in the same <script>.
    format: "iife",
    globalName: "explorer",
    banner: {
      js: "// The explorer of glassformer, bundled from its readable source: web/ of the repository.",
    },
    footer: { js: "export const { mount } = explorer;\nexport default explorer.default;" },
  });
  return outputFiles[0].text;
}

const text = await bundled();
if (!process.argv.includes("--check")) {
  await writeFile(BUNDLE, text);
} else if (text !== (await readFile(BUNDLE, "utf8"))) {
  console.error(
    "src/glassformer/explorer/explorer.js is not what web/ gives: run `make web` and commit the file",
  );
  process.exitCode = 1;
}
