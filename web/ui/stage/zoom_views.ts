// The view that opens each kind of box.
import { addNormView } from "./add_norm_zoom.ts";
import { attentionView } from "./attention_zoom.ts";
import { embeddingView } from "./embedding_zoom.ts";
import { wordsView } from "./words_zoom.ts";
import { feedForwardView } from "./feed_forward_zoom.ts";
import { placeOfBox } from "./zoom_box.ts";
import type { ZoomView } from "./opened.ts";

const VIEWS: [id: RegExp, view: ZoomView][] = [
  [/attention$/, attentionView],
  [/^(embedding|positions)$/, embeddingView],
  [/^(linear|softmax)$/, wordsView],
  [/^feed_forward$/, feedForwardView],
  [/(^|\.)(add|norm)$/, addNormView],
];

/** Returns the view that opens a box, or null if boxes of its kind cannot be opened. */
export function viewOf(box: string): ZoomView | null {
  const { id } = placeOfBox(box);
  return VIEWS.find(([pattern]) => pattern.test(id))?.[1] ?? null;
}
