// The law of ui/: its folders are layers, its files do not import each other in circles, its files and functions are
// short, and its files have names of their own. The numbers are what is still against the law; they only become smaller.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import ts from "typescript";

const WEB = join(import.meta.dirname, "..");
/** The files in circles, the functions and files that are too long, the longest function, the most imports of a file. */
const MOST = { circles: 0, long: 13, longest: 105, files: 1, imports: 23 };
const LAYERS = ["app", "figure", "box", "chapters", "view"];
const [FUNCTION, FILE] = [60, 450]; // lines, without blank lines and comments

const files = globSync("ui/**/*.ts", { cwd: WEB }).sort();
const sources = new Map(
  files.map((file) => [
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
      if (!sources.has(next)) continue;
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

test("no more files import each other in a circle", () => {
  assert.equal(circles().length, MOST.circles);
});

test("no more functions and files are too long", () => {
  const long = files.flatMap(functionsOf).filter(({ lines }) => lines > FUNCTION);
  const longest = Math.max(...long.map(({ lines }) => lines));
  const large = files.filter((file) => linesOf(file, sources.get(file) as ts.SourceFile) > FILE);
  assert.deepEqual(
    [long.length, longest, large.length],
    [MOST.long, MOST.longest, MOST.files],
    String(large),
  );
});

test("no file imports more modules", () => {
  assert.equal(Math.max(...files.map((file) => importsOf(file).length)), MOST.imports);
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
