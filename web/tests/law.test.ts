// The law of ui/: its folders are layers, its files do not import each other in circles, its files and functions are
// short, and its files have names of their own. In engine/ and translate/, functions are short.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import ts from "typescript";

const WEB = join(import.meta.dirname, "..");
const LAYERS = ["app", "figure", "box", "chapters", "view"];
const [FUNCTION, FILE] = [60, 450]; // lines, without blank lines and comments
const IMPORTS = 18;

const all = globSync("{ui,engine,translate}/**/*.ts", { cwd: WEB }).sort();
const files = all.filter((file) => file.startsWith("ui/"));
const sources = new Map(
  all.map((file) => [
    file,
    ts.createSourceFile(file, readFileSync(join(WEB, file), "utf8"), ts.ScriptTarget.Latest, true),
  ]),
);

/** Returns the files that a file imports, types included. */
function importsOf(file: string) {
  const found = (sources.get(file) as ts.SourceFile).statements.flatMap((one) => {
    const isFrom = ts.isImportDeclaration(one) || ts.isExportDeclaration(one);
    const from = isFrom && one.moduleSpecifier && (one.moduleSpecifier as ts.StringLiteral).text;
    return from && from.startsWith(".") ? [relative(WEB, join(WEB, dirname(file), from))] : [];
  });
  return [...new Set(found)];
}

/** For each file, its lines that have a token. */
const written = new Map(
  [...sources].map(([file, source]) => {
    const lines = new Set<number>();
    const visit = (node: ts.Node) => {
      const [from, to] = [node.getStart(source), node.getEnd()].map(
        (at) => source.getLineAndCharacterOfPosition(at).line,
      );
      lines.add(from).add(to);
      // a template or a text may have lines of its own
      if (ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isStringLiteralLike(node))
        for (let line = from; line < to; line++) lines.add(line);
      ts.forEachChild(node, visit);
    };
    ts.forEachChild(source, visit);
    return [file, lines];
  }),
);

/** Returns the number of lines of a node that are neither blank nor comments. */
function linesOf(file: string, node: ts.Node) {
  const source = sources.get(file) as ts.SourceFile;
  const [from, to] = [node.getStart(source), node.getEnd()].map(
    (at) => source.getLineAndCharacterOfPosition(at).line,
  );
  const lines = written.get(file) as Set<number>;
  return [...Array(to - from + 1).keys()].filter((at) => lines.has(from + at)).length;
}

/** Returns the functions of a file with their lines; a function includes the functions inside it. */
function functionsOf(file: string) {
  const found: { name: string; lines: number }[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isFunctionLike(node) && "body" in node && node.body) {
      const named = node.name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : null);
      found.push({ name: `${file} ${named?.getText() ?? "(…)"}`, lines: linesOf(file, node) });
    }
    ts.forEachChild(node, visit);
  };
  visit(sources.get(file) as ts.SourceFile);
  return found;
}

/** Returns the files that import themselves through other files (Tarjan's strongly connected components). */
function circles() {
  const [order, low] = [new Map<string, number>(), new Map<string, number>()];
  const [stack, found]: [string[], string[][]] = [[], []];
  const visit = (file: string) => {
    order.set(file, order.size);
    low.set(file, order.get(file) as number);
    stack.push(file);
    for (const next of importsOf(file)) {
      if (!files.includes(next)) continue;
      if (!order.has(next)) visit(next);
      if (stack.includes(next)) low.set(file, Math.min(low.get(file) as number, low.get(next) as number));
    }
    if (low.get(file) !== order.get(file)) return;
    const part = stack.splice(stack.indexOf(file));
    if (part.length > 1) found.push(part);
  };
  for (const file of files) if (!order.has(file)) visit(file);
  return found.flat();
}

test("no files import each other in a circle", () => {
  assert.deepEqual(circles(), []);
});

test("functions and files are short, and a file imports few others", () => {
  const lines = (file: string) => linesOf(file, sources.get(file) as ts.SourceFile);
  const long = all.flatMap(functionsOf).filter((one) => one.lines > FUNCTION);
  const large = files.filter((file) => lines(file) > FILE);
  const many = files.filter((file) => importsOf(file).length > IMPORTS);
  assert.deepEqual([long, large, many], [[], [], []]);
});

test("no two files share a name", () => {
  const names = files.map((file) => file.replace(/^.*\//, ""));
  const shared = files.filter((_, at) => names.indexOf(names[at]) !== names.lastIndexOf(names[at]));
  assert.deepEqual(shared, []);
});

test("a file imports only its own folder and the folders before it", () => {
  const layerOf = (file: string) => LAYERS.indexOf(file.split("/")[1]);
  assert.ok(files.every((file) => layerOf(file) >= 0));
  const upwards = files.flatMap((file) =>
    importsOf(file)
      .filter((one) => one.startsWith("ui/") && layerOf(one) > layerOf(file))
      .map((one) => `${file} → ${one}`),
  );
  assert.deepEqual(upwards, []);
});
