// Converts texts to ids and back exactly as glassformer.text does: words, characters, and sentencepiece models. Each
// kind of tokenizer has a row in TOKENIZER_KINDS.

import { largestPlace, utf8Of } from "./tensor.ts";
import { makeNormaliser } from "./normaliser.ts";

import type { JoinerData, MarianData, PieceData, RecordedTexts, Tokenizer, TokenizerData } from "./types.ts";
type Cutter = Pick<Tokenizer, "encode" | "split"> & { join: Tokenizer["decode"] };
interface TokenizerKind {
  make(data: any): Cutter;
  /** Whether texts are not normalised before the tokenizer cuts them. */
  raw?: boolean;
  suggestsTokens?: boolean;
  spaceIsToken?: boolean;
}
interface Piece {
  piece: string;
  id: number;
}
type PieceModel = ReturnType<typeof pieceModel>;
/** For each position of a text: the best score of the pieces up to it, and the last of these pieces. */
interface Ends {
  best: Float32Array;
  starts: Int32Array;
  ids: Int32Array;
}

const [PAD_ID, BOS_ID, EOS_ID] = [0, 1, 2];
export const UNKNOWN_ID = 3;
export const SPACE_MARK = "▁"; // stands for a space inside tokens; in a text it counts as a space

/** Returns a tokenizer from the output of Python's `to_dict`, or from the texts of a recording. */
export function makeTokenizer(data: TokenizerData | RecordedTexts): Tokenizer {
  const kind = TOKENIZER_KINDS[data.kind];
  if (!kind) {
    const known = Object.keys(TOKENIZER_KINDS).join(", ");
    throw new Error(
      `this page cannot cut texts with a tokenizer of the kind "${data.kind}": it knows ${known}`,
    );
  }
  const { encode, join, split } = kind.make(data);
  const normalise = (text: string) => (kind.raw ? text : normaliseText(text, data.normalisation));
  return {
    kind: data.kind,
    suggestsTokens: !!kind.suggestsTokens,
    spaceIsToken: !!kind.spaceIsToken,
    eosId: data.with_eos === false ? PAD_ID : EOS_ID,
    encode: (text) => encode(normalise(text)),
    decode: (ids) => join(checkedIds(ids, data.tokens).filter((id) => id >= UNKNOWN_ID)),
    tokens: (ids) => checkedIds(ids, data.tokens).map((id) => data.tokens[id]),
    split: (text) => split(normalise(text)),
  };
}

const TOKENIZER_KINDS: Record<string, TokenizerKind> = {
  words: {
    make: (data) => lookupTokenizer(data, splitWords, joinWords, straightened),
    suggestsTokens: true,
  },
  characters: {
    make: (data) => lookupTokenizer(data, splitCharacters, joinCharacters, (token) => token),
    suggestsTokens: true,
    spaceIsToken: true,
  },
  bpe: { make: (data: PieceData) => pieceTokenizer(data, mergedPieces) },
  unigram: { make: (data: PieceData) => pieceTokenizer(data, likeliestPieces) },
  marian: { make: marianTokenizer, raw: true }, // the sentencepiece model has its own normalisation
  recorded: { make: recordedTexts },
};

/** Returns the ids as an Array; throws for an id without a token. */
function checkedIds(ids: number[], tokens: Record<number, string>) {
  const wrong = ids.find((id) => tokens[id] === undefined);
  if (wrong === undefined) return [...ids];
  throw new RangeError(`token id ${wrong} is not in a vocabulary of ${Object.keys(tokens).length} tokens`);
}

// --- normalisation, the first step of every tokenizer

// The white space of Python's str.split (JavaScript's \s is a different set), and SPACE_MARK.
// eslint-disable-next-line no-control-regex -- \x1c to \x1f are white space in Python
const SPACES = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000▁]+/;
const SPACES_AT_ENDS = new RegExp(`^${SPACES.source}|${SPACES.source}$`, "g");
// What follows equals glassformer.text.normalisation, which explains the order of the steps.
const REMOVED = /[\xad\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g;
const UNSPACED =
  "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd" +
  "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\u{20000}-\u{3ffff}]";
/* eslint-disable no-misleading-character-class -- the ends of ranges may be combining marks */
const NOT_BEFORE_LETTERS = new RegExp(`\u200b+(?!\u200b|(?!\\p{M})${UNSPACED})`, "gu");
const AFTER_LETTERS = new RegExp(`(${UNSPACED}\u200b)?\u200b*`, "gu");
/* eslint-enable no-misleading-character-class */

/** Returns {encode, join, split} for the texts of a recording. */
function recordedTexts({ tokens, texts }: RecordedTexts): Cutter {
  const plain = (ids: number[]) => ids.filter((id) => id >= UNKNOWN_ID);
  const ids = new Map(texts.map(([text, some]) => [normaliseText(text), some]));
  const found = new Map(texts.map(([text, some]) => [String(plain(some)), text]));
  return {
    encode(text) {
      const some = ids.get(text);
      if (some) return some;
      throw new Error(
        "this page is a recording of one sentence: other texts need the model (glassformer explore RUN)",
      );
    },
    join: (some) => found.get(String(some)) ?? some.map((id) => tokens[id]).join(" "),
    split: (text) => text.split(" "),
  };
}

/**
 * Returns the text with each run of white space replaced by one space, and trimmed; unless the normalisation is
 * "spaces", also with composed letters and without invisible characters.
 */
function normaliseText(text: string, normalisation?: string) {
  if (normalisation !== "spaces") {
    text = text
      .replace(REMOVED, "")
      .replaceAll("\u2011", "-")
      .replace(NOT_BEFORE_LETTERS, "")
      .normalize()
      .replace(AFTER_LETTERS, "$1");
  }
  return text.split(SPACES).filter(Boolean).join(" ");
}

// --- words and characters: cut by a rule, then looked up in a vocabulary

/** Returns {encode, join, split}. A token that is not in the vocabulary is respelled and looked up once more. */
function lookupTokenizer(
  { tokens, with_bos: withBos }: TokenizerData,
  split: (text: string) => string[],
  join: (tokens: string[]) => string,
  respelled: (token: string) => string,
): Cutter {
  const ids = new Map(tokens.map((token, id) => [token, id]));
  const idOf = (token: string) => ids.get(token) ?? ids.get(respelled(token)) ?? UNKNOWN_ID;
  return {
    // The letters "<eos>" in a text must not end the sentence.
    encode: (text) => [
      ...(withBos ? [BOS_ID] : []),
      ...split(text).map((token) => Math.max(idOf(token), UNKNOWN_ID)),
    ],
    join: (someIds) => join(someIds.map((id) => tokens[id])),
    split,
  };
}

function splitCharacters(text: string) {
  return [...text.replaceAll(" ", SPACE_MARK)];
}

function joinCharacters(tokens: string[]) {
  return tokens.join("").replaceAll(SPACE_MARK, " ");
}

const OPENING = new Set("([{«“„¿¡");
const CLOSING = new Set(".,!?;:…)]}»”");
const ELISIONS = "c d j l m n s t qu jusqu lorsqu puisqu quoiqu".split(" ").map((word) => `${word}'`);
const CONTRACTIONS = ["n't", "'s", "'re", "'ve", "'ll", "'d", "'m", "'"];
const LEAN_RIGHT = new Set([...OPENING, ...ELISIONS]);
const LEAN_LEFT = new Set([...CLOSING, ...CONTRACTIONS]);

/**
 * Returns the words of a normalised text. A word begins with "▁" if the text has a space before the word where
 * `joinWords` would put no space.
 */
function splitWords(text: string) {
  const tokens: string[] = [];
  for (const word of text === "" ? [] : text.split(" ")) {
    const [first, ...rest] = cutWord(word);
    const leans = tokens.length > 0 && leanTogether(tokens[tokens.length - 1], first);
    tokens.push(leans ? SPACE_MARK + first : first, ...rest);
  }
  return tokens;
}

/** Returns the text of these words, without a space where two words belong together. */
function joinWords(tokens: string[]) {
  const spaced = tokens.map((token, i) => {
    const marked = token.replaceAll(SPACE_MARK, " ");
    return marked.startsWith(" ") || leanTogether(tokens[i - 1] ?? "", token) ? marked : ` ${token}`;
  });
  return spaced.join("").replace(/^ +/, "");
}

function leanTogether(left: string, right: string) {
  const bare = left.startsWith(SPACE_MARK) ? left.slice(1) : left;
  return LEAN_RIGHT.has(plainWord(bare)) || LEAN_LEFT.has(plainWord(right));
}

// Lower case is used only to look up a word in the lists above. For the letters in these lists, JavaScript and Python
// agree on the lower case.
function plainWord(token: string) {
  return straightened(token).toLowerCase();
}

function straightened(token: string) {
  return token.replaceAll("’", "'");
}

/** Returns the parts of a word: prefixes that join to the right, the rest, and suffixes that join to the left. */
function cutWord(word: string) {
  const heads: string[] = [];
  const tails: string[] = [];
  for (let head = wordHead(word); head; head = wordHead(word)) {
    heads.push(head);
    word = word.slice(head.length);
  }
  for (let tail = wordTail(word); tail; tail = wordTail(word)) {
    tails.unshift(tail);
    word = word.slice(0, -tail.length);
  }
  return [...heads, word, ...tails];
}

function wordHead(word: string) {
  const end = OPENING.has(word[0]) ? 1 : straightened(word).indexOf("'") + 1;
  return end < word.length && LEAN_RIGHT.has(plainWord(word.slice(0, end))) ? word.slice(0, end) : "";
}

function wordTail(word: string) {
  if (word.length > 1 && CLOSING.has(word.slice(-1))) return word.slice(-1);
  if (ELISIONS.includes(plainWord(word))) return "";
  const endings = CONTRACTIONS.filter((it) => word.length > it.length).map((it) => word.slice(-it.length));
  return endings.find((ending) => CONTRACTIONS.includes(plainWord(ending))) ?? "";
}

// --- sentencepiece: pieces with scores

const [NORMAL_PIECE, UNKNOWN_PIECE, CONTROL_PIECE, SYMBOL, BYTE_PIECE] = [1, 2, 3, 4, 6]; // as in ModelProto
const SYMBOL_SCORE = 0.1; // for each byte after the first
const UNKNOWN_PENALTY = 10;
const SCORE_LIMIT = 100000; // sentencepiece restarts a sum beyond this limit, so that float32 stays exact enough

/** Returns {encode, join, split}. `cut` turns a text's characters, with "▁" for spaces, into pieces with ids. */
function pieceTokenizer(data: PieceData, cut: (model: PieceModel, characters: string[]) => Piece[]): Cutter {
  const model = pieceModel(data);
  const pieces = (text: string) => (text === "" ? [] : spelledPieces(model, cut(model, [...marked(text)])));
  return {
    encode: (text) => pieces(text).map(({ id }) => id),
    join: (ids) => joinPieces(data, ids),
    split: (text) => pieces(text).map(({ piece }) => piece),
  };
}

/**
 * Returns {encode, join, split} for a Marian tokenizer: a sentencepiece model cuts, and a separate vocabulary gives the
 * ids.
 */
function marianTokenizer({ tokens, cutter, joiner }: MarianData): Cutter {
  const specials = tokens.slice(0, UNKNOWN_ID + 1);
  const ids = new Map(tokens.map((token, id) => [token, id]));
  const symbols = cutter.pieces.filter((_, i) => cutter.types[i] === SYMBOL);
  const model = pieceModel({
    tokens: [...specials, ...cutter.pieces],
    scores: [...specials.map(() => 0), ...cutter.scores],
    types: [...specials.map(() => CONTROL_PIECE), ...cutter.types],
  });
  const normalise = makeNormaliser(cutter, symbols);
  const isUnigram = cutter.kind === "unigram";
  const split = (text: string) => {
    const code = languageCode(withWholeCharacters(text));
    const normal = normalise(text.slice(code.length));
    const cut = isUnigram
      ? likeliestPieces(model, [...normal])
      : mergedPieces(model, withSymbols(normal, symbols), new Set(symbols));
    return [...(code ? [code] : []), ...spelledPieces(model, cut).map(({ piece }) => piece)];
  };
  return {
    // Pieces whose ids belong to special tokens become <unk>, so that no text can contain a special token.
    encode: (text) => split(text).map((piece) => Math.max(ids.get(piece) ?? UNKNOWN_ID, UNKNOWN_ID)),
    join: (someIds) => joinMarian(tokens, joiner, someIds),
    split,
  };
}

/** Returns the language code at the start of a text, such as ">>fra<<", which selects the target language, or "". */
function languageCode(text: string) {
  return text.startsWith(">>") && text.includes("<<") ? text.slice(0, text.indexOf("<<") + 2) : "";
}

/** Returns the characters of a text; each of the user-defined symbols counts as one character. */
function withSymbols(text: string, symbols: string[]) {
  if (!symbols.length) return [...text];
  const longestFirst = symbols.toSorted((a, b) => b.length - a.length);
  const parts = [];
  for (let at = 0; at < text.length; at += parts[parts.length - 1].length) {
    const symbol = longestFirst.find((one) => text.startsWith(one, at));
    parts.push(symbol ?? String.fromCodePoint(text.codePointAt(at) as number));
  }
  return parts;
}

/** Returns the text of ids. The runs of tokens between unknown tokens are joined separately. */
function joinMarian(tokens: string[], joiner: JoinerData, ids: number[]) {
  const runs: number[][] = [[]];
  for (const id of ids) {
    if (id === UNKNOWN_ID) runs.push([]);
    else runs[runs.length - 1].push(id);
  }
  const texts = runs.map((run) => joinPieces({ tokens, ...joiner }, run));
  return texts.join(` ${tokens[UNKNOWN_ID]} `).replaceAll(SPACE_MARK, " ").replace(SPACES_AT_ENDS, "");
}

/** Returns the tables of a model: ids by piece, float32 scores by id, ids by byte (empty without byte fallback). */
function pieceModel({ tokens, scores, types }: Pick<PieceData, "tokens" | "scores" | "types">) {
  const ofType = (type: number) => [...tokens.entries()].filter(([id]) => types[id] === type);
  const normal = ofType(NORMAL_PIECE);
  const cutting = [...normal, ...ofType(SYMBOL)];
  const worst = normal.reduce((least, [id]) => Math.min(least, Math.fround(scores[id])), Infinity);
  return {
    ids: new Map(cutting.map(([id, piece]) => [piece, id])),
    scores: Float32Array.from(scores, (score, id) =>
      types[id] === SYMBOL ? symbolScore(tokens[id]) : score,
    ),
    unknownScore: Math.fround(worst - UNKNOWN_PENALTY),
    longest: cutting.reduce((most, [, piece]) => Math.max(most, [...piece].length), 0),
    byteIds: new Map(ofType(BYTE_PIECE).map(([id, piece]) => [byteOfPiece(piece), id])),
  };
}

/** Returns the score that sentencepiece gives to a user-defined piece. */
function symbolScore(symbol: string) {
  return SYMBOL_SCORE * (utf8Of(symbol).length - 1);
}

/** Returns the byte of a piece such as "<0x41>". */
function byteOfPiece(piece: string) {
  return Number(piece.slice(1, -1));
}

/** Returns the text with spaces as "▁", and one "▁" before it. */
function marked(text: string) {
  return SPACE_MARK + withWholeCharacters(text).replaceAll(" ", SPACE_MARK);
}

/** Returns the text; throws if it contains an unpaired surrogate. */
function withWholeCharacters(text: string) {
  if (/\p{Surrogate}/u.test(text))
    throw new Error("the text holds half a surrogate pair, which is not a character");
  return text;
}

/**
 * Returns the pieces with the highest sum of scores (unigram model, Viterbi algorithm), with sentencepiece's order and
 * precision.
 */
function likeliestPieces(model: PieceModel, characters: string[]) {
  const count = characters.length;
  const ends = {
    best: new Float32Array(count + 1),
    starts: new Int32Array(count + 1).fill(-1),
    ids: new Int32Array(count + 1),
  };
  for (let start = 0; start < count; start++) {
    if (Math.abs(ends.best[start]) > SCORE_LIMIT) countAnew(ends, start);
    const single = offerPieces(model, characters, ends, start);
    if (!single) offerPiece(ends, start, start + 1, UNKNOWN_ID, model.unknownScore);
  }
  const pieces = [];
  for (let end = count; end > 0; end = ends.starts[end]) {
    pieces.push({ piece: characters.slice(ends.starts[end], end).join(""), id: ends.ids[end] });
  }
  return pieces.reverse();
}

/**
 * Offers to `offerPiece` every piece that begins at `start`, shortest first. Returns whether one of these pieces is a
 * single character.
 */
function offerPieces(model: PieceModel, characters: string[], ends: Ends, start: number) {
  const last = Math.min(start + model.longest, characters.length);
  let single = false;
  for (let end = start + 1, piece = ""; end <= last; end++) {
    piece += characters[end - 1];
    const id = model.ids.get(piece);
    if (id === undefined) continue;
    offerPiece(ends, start, end, id, model.scores[id]);
    single ||= end === start + 1;
  }
  return single;
}

/**
 * Makes the piece from `start` to `end` the last piece of the best path to `end` if the path's score rises; in a tie,
 * the earlier piece stays.
 */
function offerPiece(ends: Ends, start: number, end: number, id: number, score: number) {
  const sum = Math.fround(ends.best[start] + score);
  if (ends.starts[end] !== -1 && sum <= ends.best[end]) return;
  ends.best[end] = sum;
  ends.starts[end] = start;
  ends.ids[end] = id;
}

function countAnew({ best, starts }: Ends, from: number) {
  const offset = best[from];
  for (let end = from; end < best.length; end++) if (starts[end] !== -1) best[end] -= offset;
}

/**
 * Returns the pieces of byte-pair encoding, which merges the neighbours with the highest score first, leftmost in a
 * tie. `whole`: pieces that are never merged.
 */
function mergedPieces({ ids, scores }: PieceModel, characters: string[], whole: Set<string> = new Set()) {
  const pieces = [...characters];
  const scoreAt = (left: number) => {
    const isWhole = whole.has(pieces[left]) || whole.has(pieces[left + 1]);
    return isWhole ? -Infinity : (scores[ids.get(pieces[left] + pieces[left + 1]) ?? -1] ?? -Infinity);
  };
  const pairs = pieces.map((_, left) => scoreAt(left)); // the score of each piece joined with its right neighbour
  for (let left = largestPlace(pairs); pairs[left] > -Infinity; left = largestPlace(pairs)) {
    pieces.splice(left, 2, pieces[left] + pieces[left + 1]);
    pairs.splice(left + 1, 1);
    pairs[left] = scoreAt(left);
    if (left > 0) pairs[left - 1] = scoreAt(left - 1);
  }
  return pieces.map((piece) => ({ piece, id: ids.get(piece) ?? UNKNOWN_ID }));
}

/**
 * Returns the pieces with unknown characters spelled as bytes. Without byte fallback, adjacent unknown
 * characters become one <unk>.
 */
function spelledPieces({ byteIds }: PieceModel, pieces: Piece[]) {
  const spelled: Piece[] = [];
  for (const { piece, id } of pieces) {
    const last = spelled.at(-1);
    if (id === UNKNOWN_ID && byteIds.size > 0) spelled.push(...bytePieces(byteIds, piece));
    else if (id === UNKNOWN_ID && last?.id === UNKNOWN_ID) last.piece += piece;
    else spelled.push({ piece, id });
  }
  return spelled;
}

function bytePieces(byteIds: PieceModel["byteIds"], piece: string) {
  return Array.from(utf8Of(piece), (byte) => ({
    piece: `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
    id: byteIds.get(byte) as number,
  }));
}

/**
 * Returns the text of pieces. Adjacent byte pieces are decoded as UTF-8. One leading space is dropped, or all leading
 * spaces if the model trims spaces. Unknown pieces stay as they are.
 */
function joinPieces(
  { tokens, types, prefix = true, trimmed = true }: JoinerData & { tokens: string[] },
  ids: number[],
) {
  let text = "";
  let dropsSpace = prefix || trimmed;
  for (let i = 0; i < ids.length; i++) {
    const bytes = [];
    for (; types[ids[i]] === BYTE_PIECE; i++) bytes.push(byteOfPiece(tokens[ids[i]]));
    text += textOfBytes(bytes);
    if (i === ids.length) break;
    dropsSpace &&= text === "";
    const [token, type] = [tokens[ids[i]], types[ids[i]]];
    if (type === CONTROL_PIECE) continue;
    const drops = dropsSpace && type !== UNKNOWN_PIECE && token.startsWith(SPACE_MARK);
    if (drops && !trimmed) dropsSpace = false;
    const piece = drops ? token.slice(SPACE_MARK.length) : token;
    text += type === UNKNOWN_PIECE ? piece : piece.replaceAll(SPACE_MARK, " ");
  }
  return text;
}

/** Returns the text of these UTF-8 bytes; each byte that cannot begin a character becomes "\ufffd". */
function textOfBytes(bytes: number[]) {
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  for (let at = 0; at < bytes.length;) {
    const size = [0x80, 0xe0, 0xf0].filter((lead) => bytes[at] >= lead).length + 1;
    const character = decodedOrNull(utf8, bytes.slice(at, at + size));
    text += character ?? "\ufffd";
    at += character === null ? 1 : size;
  }
  return text;
}

function decodedOrNull(utf8: TextDecoder, bytes: number[]) {
  try {
    return utf8.decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}
