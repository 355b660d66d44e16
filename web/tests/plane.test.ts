// The figure's plane: down to 1024 × 640 px, the figure is scaled as a whole, and its type is painted with 12 px.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NARROW, planeOf } from "../ui/figure/geometry.ts";

const WINDOWS = [
  [1024, 640],
  [1100, 700],
  [1280, 720],
  [1440, 900],
];

test("type is never painted with less than 12 px, and 14 px in a lecture", () => {
  for (const [width, height] of [...WINDOWS, [1024, 400], [1366, 650], [2560, 1440]])
    for (const isLecture of [false, true]) {
      const { scale, least } = planeOf(width, isLecture, height);
      assert.ok(scale >= 0.7);
      assert.ok(least * scale >= (isLecture ? 14 : 12) - 1e-9, `${width} × ${height}`);
    }
});

test("the plane fills the window's width, and its height from 504 px", () => {
  for (const [width, height] of WINDOWS) {
    const plane = planeOf(width, false, height);
    assert.ok(Math.abs(plane.width * plane.scale - width) < 1);
    assert.ok(Math.abs(plane.height * plane.scale - height) < 1);
  }
  assert.equal(planeOf(1024, false, 300).height, 720); // the page scrolls
  const { height, scale } = planeOf(1280, false, 720, 4);
  assert.deepEqual([height, height * scale], [720 + 4 * 42, 720]); // norms of their own need room
});

test("a window without room for both stacks side by side has a figure that is not scaled", () => {
  const { width, scale } = planeOf(NARROW - 1, false, 800);
  assert.deepEqual([width, scale], [NARROW - 1, 1]);
});
