// The state of a view, and its initial value.
import { NO_CHANGES } from "../../engine/changes.ts";
import { FAMILIES, layersOf } from "./heads.ts";

import type { Engine, ModelConfig, Payload } from "../../engine/types.ts";
import type { Asked, FamilyId, HeadPlace, Selection, Result } from "./types.ts";

export interface State extends Asked, Selection {
  /** The latest results; null before the first result. */
  result: Result | null;
  /** Whether a result is being computed. */
  busy: boolean;
  /** The error message of the last action, or "". */
  problem: string;
  /** A counter that increases when the space for pictures changes. */
  layout: number;
}

/** Returns the state of a view that has computed nothing yet. */
export function firstState(payload: Payload, { config, decoding }: Engine): State {
  return {
    ...firstSelection(config),
    sentence: payload.sentence,
    changes: { ...NO_CHANGES },
    search: { beamSize: decoding.beam_size, lengthPenalty: decoding.length_penalty },
    result: null,
    busy: false,
    problem: "",
    layout: 0,
  };
}

function firstSelection(config: ModelConfig): Selection {
  const heads = FAMILIES.map((family) => [family.id, { layer: layersOf(config, family) - 1, head: 0 }]);
  return {
    language: navigator.language?.startsWith("zh") ? "zh" : "en",
    theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
    row: null,
    sourceWord: null,
    box: "decoder.cross_attention",
    zoom: null,
    chapter: 0,
    act: 0,
    guess: "",
    lecture: false,
    task: "",
    temperature: 1,
    sheet: false,
    heads: Object.fromEntries(heads) as Record<FamilyId, HeadPlace>,
    order: "index",
    contrast: false,
    pinned: [],
    second: null,
    panel: "calculation",
    word: null,
    selected: null,
  };
}
