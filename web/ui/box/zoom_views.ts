// The view that opens each kind of box.
import { kindOf } from "../app/boxes.ts";
import { addNormView } from "./add_norm_zoom.ts";
import { attentionView } from "./attention_zoom.ts";
import { embeddingView } from "./embedding_zoom.ts";
import { feedForwardView } from "./feed_forward_zoom.ts";
import { wordsView } from "./words_zoom.ts";

import type { Kind } from "../app/boxes.ts";
import type { ZoomView } from "./opened.ts";

const VIEWS: Record<Kind, ZoomView> = {
  emb: embeddingView,
  att: attentionView,
  add: addNormView,
  ffn: feedForwardView,
  lin: wordsView,
  sof: wordsView,
};

/** Returns the view that opens a box, or null if the figure has no such box. */
export function viewOf(box: string): ZoomView | null {
  const kind = kindOf(box);
  return kind && VIEWS[kind];
}
