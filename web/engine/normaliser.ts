// The normalisation of a sentencepiece model: it replaces characters, and removes or marks spaces.
import { bytesOf, utf8Of } from "./tensor.ts";

import type { CutterData } from "./types.ts";
/** A replacement, and the number of bytes that it replaces. */
type Rule = [replacement: string, length: number];

const SPACE_MARK = "▁";

/** Returns a function that normalises a text but leaves `symbols`, the user-defined pieces, as they are. */
export function makeNormaliser(
  { characters, prefix, trimmed, escaped }: CutterData,
  symbols: string[],
): (text: string) => string {
  const ruleAt = rules(bytesOf(characters), symbols);
  const space = escaped ? SPACE_MARK : " ";
  return (text) => {
    const bytes = utf8Of(text);
    if (!bytes.length) return "";
    let normal = "";
    for (let at = 0, dropsSpaces = trimmed; at < bytes.length;) {
      const [replacement, length] = ruleAt(bytes, at);
      const piece = dropsSpaces ? replacement.replace(/^ +/, "") : replacement;
      if (piece !== "") dropsSpaces = trimmed && piece.endsWith(" ");
      normal += piece;
      at += length;
    }
    const spaced = (prefix ? space : "") + normal.replaceAll(" ", space);
    return trimmed ? withoutEnd(spaced, space) : spaced;
  };
}

/** Returns the text without the spaces at its end. */
function withoutEnd(text: string, space: string) {
  let end = text.length;
  while (end > 0 && text[end - 1] === space) end--;
  return text.slice(0, end);
}

/**
 * Returns a function that finds the rule for the bytes at a position of a text: the longest rule that matches.
 *
 * `table` has sentencepiece's format: the size in bytes of a double array (uint32), the array itself, and the
 * replacements, each ended by a zero byte.
 */
function rules(table: Uint8Array<ArrayBuffer>, symbols: string[]): (bytes: Uint8Array, at: number) => Rule {
  const view = new DataView(table.buffer, table.byteOffset, table.byteLength);
  const size = table.length > 4 ? view.getUint32(0, true) : 0;
  const units = Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 + 4 * i, true));
  const replacements = table.subarray(4 + size);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const written = symbols.map(utf8Of).sort((a, b) => b.length - a.length);
  return (bytes, at) => {
    const symbol = written.find((one) => one.every((byte, i) => byte === bytes[at + i]));
    if (symbol) return [decoder.decode(symbol), symbol.length];
    const [length, start] = longestMatch(units, bytes, at);
    if (length > 0) {
      return [decoder.decode(replacements.subarray(start, replacements.indexOf(0, start))), length];
    }
    const width = [0xc0, 0xe0, 0xf0].filter((lead) => bytes[at] >= lead).length + 1;
    return [decoder.decode(bytes.subarray(at, at + width)), width];
  };
}

/**
 * Returns the length of the longest key that begins at `at`, and the key's value; the length is 0 if no key begins
 * there.
 *
 * A unit of the double array has a label (its lowest byte), an offset to its children (from bit 10, in blocks of 256
 * if bit 9 is set), and bit 8, which is set if a key ends at this unit. The key's value is then in the unit's child
 * with the label 0.
 */
function longestMatch(units: Uint32Array, bytes: Uint8Array, at: number): [length: number, value: number] {
  let longest: [number, number] = [0, 0];
  let node = 0;
  for (let end = at; end < bytes.length; end++) {
    node ^= childrenOf(units[node]) ^ bytes[end];
    const unit = units[node];
    if (unit === undefined || (unit & 0x800000ff) !== bytes[end]) break;
    if (unit & 0x100) longest = [end + 1 - at, units[node ^ childrenOf(unit)] & 0x7fffffff];
  }
  return longest;
}

function childrenOf(unit: number) {
  return (unit >>> 10) << ((unit & 0x200) >>> 6);
}
