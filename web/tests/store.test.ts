// The state of a view, and which listeners are called when its parts are set.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Store } from "../ui/app/store.ts";

/** Returns a store, and a list of the calls that a listener to `a` and `b` has received. */
function watched() {
  const store = new Store({ a: 1, b: 2, c: 3 });
  const told: unknown[] = [];
  const stop = store.on(["a", "b"], ({ a, b, c }, changed) => told.push([a, b, c, [...changed].join()]));
  return { store, told, stop };
}

test("a listener is told once of parts that are set together, and sees all of them", () => {
  const { store, told } = watched();
  store.set({ c: 6, b: 5, a: 4 });
  assert.deepEqual(told, [[4, 5, 6, "c,b,a"]]);
});

test("a listener is told of its own parts only, also when they keep their values", () => {
  const { store, told } = watched();
  store.set({ c: 6 });
  store.set({});
  assert.deepEqual(told, []);
  store.set({ a: 1 });
  assert.deepEqual(told, [[1, 2, 6, "a"]]);
});

test("listeners are told in the order in which they came, and not after they stopped", () => {
  const { store, told, stop } = watched();
  store.on(["a"], () => told.push("second"));
  store.set({ a: 4 });
  stop();
  store.set({ a: 5 });
  assert.deepEqual(told, [[4, 2, 3, "a"], "second", "second"]);
});

test("a listener that sets a part gives the listeners after it the newest state", () => {
  const store = new Store({ a: 1, b: 2 });
  const told: number[] = [];
  store.on(["a"], () => store.set({ b: 3 }));
  store.on(["a"], ({ b }) => told.push(b));
  store.set({ a: 4 });
  assert.deepEqual(told, [3]);
});
