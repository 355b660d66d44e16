// The explorer as one module: `mount` puts a view into an element; the default export is the notebook's door to it.
import { createView } from "./view.js";

/**
 * @import { Bytes, Host, Payload } from "../engine/types.js"
 * @import { AnyModel, Message, Mounted } from "./types.js"
 */

/** @typedef {Host & {close(): void}} WidgetHost */

/**
 * Puts a view of a model into an element and returns it: the console that docs/explorer.md describes, with `close()`.
 * @param {Mounted} el
 * @param {Payload} payload - What Python hands over.
 * @param {Host | null} [host] - Asks the Python behind the page, if there is one.
 */
export function mount(el, payload, host = null) {
  const view = createView(el, payload, host ?? serverHost(payload.host));
  el.glassformer = view;
  globalThis.glassformer = view;
  return view;
}

/** The door of anywidget: `render` runs once a view, and returns what closes it. */
export default { render };

/**
 * @param {{model: AnyModel, el: HTMLElement}} cell
 * @returns {Promise<() => void>}
 */
async function render({ model, el }) {
  const host = widgetHost(model);
  const { message, buffers } = await host.request({ kind: "payload" });
  const view = mount(el, /** @type {Payload} */ (withBuffers(message.payload, buffers)), host);
  return () => {
    view.close();
    host.close();
  };
}

/**
 * Returns the payload with its numbers in place: where it says {"buffer": n}, the n-th buffer is meant.
 * @param {unknown} value
 * @param {Bytes[]} buffers
 * @returns {unknown}
 */
function withBuffers(value, buffers) {
  if (Array.isArray(value)) return value.map((part) => withBuffers(part, buffers));
  if (value === null || typeof value !== "object") return value;
  if ("buffer" in value && typeof value.buffer === "number" && Object.keys(value).length === 1)
    return buffers[value.buffer];
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withBuffers(part, buffers)]));
}

/**
 * Returns the host of a page that a server sent, or null for a page that stands alone.
 * @param {Payload["host"]} host
 * @returns {Host | null}
 */
function serverHost(host) {
  if (!host?.url) return null;
  return {
    async request(message) {
      const answer = await fetch(host.url, { method: "POST", body: JSON.stringify(message) });
      const bytes = await answer.arrayBuffer();
      const length = new DataView(bytes).getUint32(0, true);
      const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
      if (header.error) throw new Error(header.error);
      return { message: header, buffers: [bytes.slice(4 + length)] };
    },
  };
}

/**
 * Returns the host of a notebook's cell: messages to the kernel and back, told apart by their number.
 * @param {AnyModel} model
 * @returns {WidgetHost}
 */
function widgetHost(model) {
  /** @type {Map<string, {resolve(answer: any): void, reject(error: Error): void}>} */
  const waiting = new Map();
  let counted = 0;
  /**
   * @param {Message} message
   * @param {(ArrayBuffer | ArrayBufferView<ArrayBuffer>)[]} buffers
   */
  function receive(message, buffers) {
    const answered = waiting.get(message.id);
    if (!answered) return;
    waiting.delete(message.id);
    if (message.error) answered.reject(new Error(message.error));
    else answered.resolve({ message, buffers: buffers.map(copied) });
  }
  model.on("msg:custom", receive);
  return {
    request(message) {
      const id = `${Date.now()}-${++counted}`;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        model.send({ ...message, id });
      });
    },
    close: () => model.off("msg:custom", receive),
  };
}

/**
 * Returns the bytes of a view that may lie anywhere in its buffer as a buffer of their own.
 * @param {ArrayBuffer | ArrayBufferView<ArrayBuffer>} view
 */
function copied(view) {
  if (view instanceof ArrayBuffer) return view;
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}
