// The steps of the training whose weights the page has.
import type { Payload } from "../../engine/types.ts";
import type { App } from "./app.ts";

/**
 * Returns the steps that can be chosen, oldest first; the last entry is null, which stands for the run's final model.
 */
export function checkpointSteps({ checkpoints = [], step }: Payload) {
  return [...checkpoints.map((one) => one.step).filter((one) => one !== step), null];
}

export function stepName(app: App, step: number | null) {
  return step === null ? app.t("training.final") : app.t("training.step", step);
}
