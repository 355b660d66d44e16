// Bundles the explorer into the two committed files that Python reads, a module and its style sheet. With --check, only
// compares these files.
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { build, transform } from "esbuild";

const FOLDER = new URL("../src/glassformer/explorer/", import.meta.url);
const STYLES = ["ui/styles.css", "ui/story.css"];

/** Returns the style sheet. */
async function styles() {
  const sheets = await Promise.all(STYLES.map((path) => readFile(new URL(path, import.meta.url), "utf8")));
  const { code } = await transform(sheets.join("\n"), { loader: "css", minify: true, charset: "utf8" });
  return code;
}

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

for (const [name, text] of [
  ["explorer.js", await bundled()],
  ["explorer.css", await styles()],
]) {
  const file = new URL(name, FOLDER);
  if (!process.argv.includes("--check")) {
    await writeFile(file, text);
  } else if (text !== (await readFile(file, "utf8"))) {
    console.error(
      `src/glassformer/explorer/${name} is not what web/ gives: run \`make web\` and commit the file`,
    );
    process.exitCode = 1;
  }
}
