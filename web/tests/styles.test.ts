// The page's colours: styles.css defines each of them once for each theme, with enough contrast to the page.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";

const UI = new URL("../ui/", import.meta.url);
const css = readFileSync(new URL("app/styles.css", UI), "utf8");
const report = readFileSync(new URL("../../src/glassformer/watch/report/style.css", UI), "utf8");
const page = readFileSync(new URL("../translate/page.css", UI), "utf8");
const COLOUR = /#[0-9a-f]{3,8}\b|\b(rgb|hsl|hwb|lab|lch|oklab|oklch|color)a?\(/i;

/** Returns the colours of a theme, by name. */
function themeOf(selector: string) {
  const start = css.indexOf(`${selector} {`);
  const block = css.slice(start, css.indexOf("}", start));
  return new Map([...block.matchAll(/^ *--([\w-]+): (.+);$/gm)].map(([, name, value]) => [name, value]));
}
const THEMES = { light: themeOf(".glassformer"), dark: themeOf('.glassformer[data-theme="dark"]') };

/** Returns the relative luminance of a colour written #rrggbb (WCAG 2). */
function luminance(hex: string) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const share = parseInt(hex.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test("both themes have the same colours", () => {
  assert.ok(THEMES.light.size > 15); // otherwise, the style sheet was not read
  assert.deepEqual([...THEMES.light.keys()], [...THEMES.dark.keys()]);
});

test("both themes of the stage have the same colours, and its parts write none", () => {
  const stage = readFileSync(new URL("figure/stage.css", UI), "utf8");
  const blocks = [...stage.matchAll(/\.gf-stage-root \{([^}]*)\}/g)].slice(0, 2);
  const names = blocks.map(([, block]) => [...block.matchAll(/--([\w-]+): #/g)].map(([, name]) => name));
  assert.ok(names[0].length > 20);
  assert.deepEqual(names[0], names[1]);
  for (const name of [
    "figure/stage",
    "chapters/look",
    "box/zoom",
    "chapters/chapters",
    "box/numbers/numbers",
  ]) {
    const sheet = readFileSync(new URL(`${name}.css`, UI), "utf8");
    assert.doesNotMatch(sheet.replaceAll(/--[\w-]+: #\w+;/g, ""), COLOUR, name);
  }
});

test("the report has the page's colours", () => {
  const blocks = [...report.matchAll(/:root \{([^}]*)\}/g)]; // light, dark, and print
  for (const [i, theme] of [THEMES.light, THEMES.dark].entries()) {
    const colours = [...blocks[i][1].matchAll(/--(\w+): (#\w+);/g)];
    assert.ok(colours.length > 9);
    for (const [, name, value] of colours) assert.equal(value, theme.get(name), name);
  }
});

test("the translation page has the explorer's colours, and names each once per theme", () => {
  const blocks = [...page.matchAll(/:root \{([^}]*)\}/g)]; // light and dark
  assert.equal(blocks.length, 2);
  for (const [i, theme] of [THEMES.light, THEMES.dark].entries()) {
    const colours = [...blocks[i][1].matchAll(/--(\w+): (#\w+);/g)];
    assert.equal(colours.length, 10);
    for (const [, name, value] of colours) assert.equal(value, theme.get(name), name);
  }
  assert.doesNotMatch(page.replaceAll(/--\w+: #\w+;/g, ""), COLOUR);
});

test("colours are written only as variables in app/styles.css", () => {
  const written = css.split("\n").filter((line) => COLOUR.test(line));
  assert.deepEqual(
    written.filter((line) => !/^ {2}--[\w-]+: /.test(line)),
    [],
  );
  for (const file of globSync("**/*.ts", { cwd: UI.pathname }))
    assert.doesNotMatch(readFileSync(new URL(file, UI), "utf8"), COLOUR, file);
});

for (const [theme, colours] of Object.entries(THEMES)) {
  for (const name of ["plus", "minus", "bar", "lit", "bad"]) {
    test(`${name} stands out from the page in the ${theme} theme`, () => {
      const [low, high] = [name, "paper"]
        .map((one) => luminance(colours.get(one) ?? ""))
        .sort((a, b) => a - b);
      assert.ok((high + 0.05) / (low + 0.05) >= 3);
    });
  }
}
