// The explorer as one module: `mount` puts a view into an element; the default export is anywidget's interface.
import { createView } from "./view.js";

/**
 * @import { Bytes, Host, Payload } from "../engine/types.js"
 * @import { AnyModel, Message, Mounted } from "./types.js"
 */

/** @typedef {Host & {close(): void}} WidgetHost */

/**
 * Puts a view of a model into an element; returns its console (docs/explorer.md), with `close()`.
 * @param {Mounted} el
 * @param {Payload} payload - The data from Python.
 * @param {Host | null} [host] - The connection to Python behind the page, if it exists.
 */
export function mount(el, payload, host = null) {
  const view = createView(el, payload, host ?? serverHost(payload.host));
  el.glassformer = view;
  globalThis.glassformer = view;
  return view;
}

/** The interface of anywidget: `render` runs once per view, and returns a function that closes the view. */
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
 * Returns the payload with the n-th buffer in place of each {"buffer": n}.
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
 * Returns the host of a served page, or null for a self-contained page.
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
 * Returns the host of a notebook's cell: numbered messages to the kernel and back.
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
 * Returns the bytes of a view as a separate buffer.
 * @param {ArrayBuffer | ArrayBufferView<ArrayBuffer>} view
 */
function copied(view) {
  if (view instanceof ArrayBuffer) return view;
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}
