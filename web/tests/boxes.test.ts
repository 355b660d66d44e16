// The table of the figure's boxes: its order is that of the forward pass, and each box has a name and a view.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { boxesOf, boxName, boxOfPanel, isBox, segmentsOf, sublayersOf } from "../ui/app/boxes.ts";
import { traces } from "./traces.ts";

import type { ModelConfig } from "../engine/types.ts";

const STACKS = ["encoder", "decoder"] as const;
const strings = JSON.parse(
  readFileSync(new URL("../../src/glassformer/watch/explorer/strings.json", import.meta.url), "utf8"),
) as Record<string, string[]>;

test("the boxes of a layer are in the order in which Python computes them", async () => {
  for (const [kind, { trace, config }] of Object.entries(await traces("forward"))) {
    const shape = { isPreNorm: config.norm === "pre", hasFinalNorm: config.final_norm };
    const ends = { norm: "normed", add: shape.isPreNorm ? "added" : "normed" };
    const names = trace.points.map(({ name }: { name: string }) => name);
    for (const stack of STACKS) {
      const places = boxesOf(stack, shape).layer.map(({ id }) => {
        const [sublayer, beside = ""] = id.split(".");
        const point = beside ? ends[beside as keyof typeof ends] : "output";
        return names.indexOf(`${stack}.layers.0.${sublayer}.${point}`);
      });
      assert.ok(
        places.every((place, at) => place > (places[at - 1] ?? -1)),
        `${kind}: ${String(places)}`,
      );
    }
  }
});

test("every box has an address, a name and a sentence, and the segment that a panel names", () => {
  const config = { norm: "pre", final_norm: true, encoder_layers: 1, decoder_layers: 2 } as ModelConfig;
  for (const stack of STACKS) {
    const { inputs, layer, outputs } = boxesOf(stack, { isPreNorm: true, hasFinalNorm: true });
    for (const { id } of [...inputs, ...layer, ...outputs]) {
      const name = boxName(stack, id, 0);
      assert.ok(isBox(config, name), name);
      assert.ok(strings[`stage.box.${stack}.${id}`], name);
    }
    assert.ok(sublayersOf(stack).every((id) => layer.some((one) => one.id === id)));
  }
  for (const panel of ["why", "beam", "positions", "weights", "rollout", "guesses"]) {
    const { box } = boxOfPanel(config, panel) as { box: string };
    assert.ok(isBox(config, box) && segmentsOf(box).some((one) => one === panel), panel);
  }
  assert.equal(boxOfPanel(config, "toString"), null);
});
