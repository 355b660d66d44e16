// Files and texts from outside the page: a chosen file, or whatever is dropped onto the page.
import { button, element, refill } from "../ui/app/dom.ts";
import { asksLatest } from "./asking.ts";
import { inWords, translateFile } from "./service.ts";
import { t } from "./words.ts";

import type { Child } from "../ui/app/types.ts";

const upload = element("input", { type: "file", hidden: true });
const choose = button("", () => upload.click());
const said = element("p", { className: "message", role: "status" });

/** The button for choosing a file, and a message about the file's translation. */
export const fileRow = element("div", { className: "bar files" }, choose, upload, said);

let kinds: string[] = [];
let languages = () => ({ source: "", target: "" });
let shown: () => Child = () => t("file.hint", kinds.join(t("comma")));

/** Sets the suffixes of the files that the service translates, and the function that returns the chosen languages. */
export function translateFiles(suffixes: string[], chosen: typeof languages) {
  [kinds, languages] = [suffixes, chosen];
  upload.accept = kinds.join(",");
  fileRow.hidden = kinds.length === 0;
  drawFiles();
}

/** Draws the button and the message about the file, in the reader's language. */
export function drawFiles() {
  refill(choose, t("file"));
  refill(said, shown());
}

function say(words: () => Child) {
  shown = words;
  drawFiles();
}

const latest = asksLatest(
  async (file: File, signal) => {
    const { source, target } = languages();
    return {
      href: await translateFile(file, { source, target }, signal),
      name: translatedName(file, target),
    };
  },
  ({ href, name }) => {
    const link = element("a", { href, download: name });
    say(() => {
      refill(link, t("file.ready", name));
      return link;
    });
  },
  (error) => say(() => element("span", { className: "bad" }, inWords(error))),
  0,
);

/** Returns the name under which a file's translation is saved, such as page.fr.html for page.html. */
function translatedName({ name }: File, language: string) {
  const dot = name.lastIndexOf(".");
  return `${name.slice(0, dot)}.${language}${name.slice(dot)}`;
}

/** Translates a file; first removes the message about the file before. */
function give(file: File) {
  const isServed = kinds.some((kind) => file.name.toLowerCase().endsWith(kind));
  latest(isServed ? file : null);
  if (isServed) say(() => t("file.busy", file.name));
  else say(() => element("span", { className: "bad" }, t("file.kinds", file.name, kinds.join(t("comma")))));
}

upload.addEventListener("change", () => {
  const [file] = upload.files ?? [];
  if (file) give(file);
  upload.value = "";
});

/**
 * Accepts files and texts that are dropped anywhere on the page. Texts dropped on the text field are left to the
 * browser.
 */
export function takeDropped(field: HTMLElement, take: (text: string) => void) {
  let isOwn = false; // whether the dragged object comes from this page
  const isWanted = ({ dataTransfer, target }: DragEvent) => {
    const types = dataTransfer?.types ?? [];
    return types.includes("Files") || (types.includes("text/plain") && !isOwn && target !== field);
  };
  const mark = (isOver: boolean) => document.body.classList.toggle("dropping", isOver);
  document.addEventListener("dragstart", () => (isOwn = true));
  document.addEventListener("dragend", () => (isOwn = false));
  document.addEventListener("dragover", (event) => {
    if (!isWanted(event)) return;
    event.preventDefault();
    mark(true);
  });
  document.addEventListener("dragleave", ({ relatedTarget }) => {
    if (!relatedTarget) mark(false);
  });
  document.addEventListener("drop", (event) => {
    mark(false);
    if (!isWanted(event)) return;
    event.preventDefault();
    const [file] = event.dataTransfer?.files ?? [];
    const text = event.dataTransfer?.getData("text/plain");
    if (file) give(file);
    else if (text) take(text);
  });
}
