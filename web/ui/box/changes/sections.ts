// The sections of the panel "What if?", in their order.
import { handSection } from "./by_hand.ts";
import { headsSection } from "./head_switches.ts";
import { masksSection } from "./masks.ts";
import { mistakesSection } from "./mistakes.ts";
import { partsSection } from "./parts.ts";
import { patchSection } from "./patches.ts";
import { wordsSection } from "./words.ts";

import type { Child, SectionName } from "../../app/types.ts";
import type { ChangesPanel } from "./panel_state.ts";

/** Returns the content of a section. */
export type Section = (panel: ChangesPanel) => Child[] | Promise<Child[]>;

/** The sections by name. */
export const SECTIONS: Record<SectionName, Section> = {
  words: wordsSection,
  heads: headsSection,
  masks: masksSection,
  hand: handSection,
  patch: patchSection,
  parts: partsSection,
  mistakes: mistakesSection,
};
export const SECTION_NAMES = Object.keys(SECTIONS) as SectionName[];
