// Bundles the explorer and the translation page into the committed files that Python reads: a module and a style sheet
// for each. With --check, only checks that these files are up to date.
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { build, transform } from "esbuild";

import type { BuildOptions } from "esbuild";

const PACKAGE = new URL("../src/glassformer/", import.meta.url);

/** Returns the text of a style sheet that is made of these files. */
async function styles(paths: string[]) {
  const sheets = await Promise.all(paths.map((path) => readFile(new URL(path, import.meta.url), "utf8")));
  const { code } = await transform(sheets.join("\n"), { loader: "css", minify: true, charset: "utf8" });
  return code;
}

/** Returns a bundle: a script without imports, with the same bytes on every machine. */
async function bundled(
  entry: string,
  how: Pick<BuildOptions, "format" | "globalName" | "banner" | "footer">,
) {
  const { outputFiles } = await build({
    entryPoints: [entry],
    absWorkingDir: import.meta.dirname,
    bundle: true,
    minify: true,
    write: false,
    target: "es2022",
    charset: "utf8",
    ...how,
  });
  return outputFiles[0].text;
}

const explorer = bundled("ui/view/explorer.ts", {
  // A single expression whose exports keep their names: in a page, `mount` is called after it in the same <script>.
  format: "iife",
  globalName: "explorer",
  banner: {
    js: "// The explorer of glassformer, bundled from its readable source: web/ of the repository.",
  },
  footer: { js: "export const { mount } = explorer;\nexport default explorer.default;" },
});
const page = bundled("translate/page.ts", {
  format: "esm",
  banner: {
    js: "// The translation page of glassformer, bundled from its readable source: web/ of the repository.",
  },
});

const SHEETS = [
  "app/styles",
  "figure/stage",
  "chapters/look",
  "box/zoom",
  "chapters/chapters",
  "box/numbers/numbers",
].map((name) => `ui/${name}.css`);
for (const [name, text] of [
  ["watch/explorer/explorer.js", await explorer],
  ["watch/explorer/explorer.css", await styles(SHEETS)],
  ["serving/page.js", await page],
  ["serving/page.css", await styles(["translate/page.css"])],
]) {
  const file = new URL(name, PACKAGE);
  if (!process.argv.includes("--check")) {
    await writeFile(file, text);
  } else if (text !== (await readFile(file, "utf8"))) {
    console.error(`src/glassformer/${name} is not what web/ gives: run \`make web\` and commit the file`);
    process.exitCode = 1;
  }
}
