// The explorer's entry point: `mount` puts a view into an element; the default export implements anywidget's interface.
import { createView } from "./view.ts";

import type { Bytes, Host, Payload } from "../../engine/types.ts";
import type { AnyModel, Message } from "../app/types.ts";
import type { Mounted } from "./view.ts";

type WidgetHost = Host & { close(): void };

/**
 * Puts a view of a model into an element. Returns the view's console (docs/explorer.md), with `close()`. `payload`: the
 * data from Python. `host`: the connection to Python behind the page, if any.
 */
export function mount(el: Mounted, payload: Payload, host: Host | null = null) {
  const view = createView(el, payload, host ?? serverHost(payload.host));
  el.glassformer = view;
  globalThis.glassformer = view;
  return view;
}

/** The interface of anywidget: `render` runs once per view, and returns a function that closes the view. */
export default { render };

async function render({ model, el }: { model: AnyModel; el: HTMLElement }): Promise<() => void> {
  const host = widgetHost(model);
  const { message, buffers } = await host.request({ kind: "payload" });
  const view = mount(el, withBuffers(message.payload, buffers) as Payload, host);
  return () => {
    view.close();
    host.close();
  };
}

/** Returns the payload with each {"buffer": n} replaced by the n-th buffer. */
function withBuffers(value: unknown, buffers: Bytes[]): unknown {
  if (Array.isArray(value)) return value.map((part) => withBuffers(part, buffers));
  if (value === null || typeof value !== "object") return value;
  if ("buffer" in value && typeof value.buffer === "number" && Object.keys(value).length === 1)
    return buffers[value.buffer];
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withBuffers(part, buffers)]));
}

/** Returns the connection to the server of a page; null for a page without a server. */
function serverHost(host: Payload["host"]): Host | null {
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

/** Returns the connection to a notebook's kernel, which exchanges numbered messages. */
function widgetHost(model: AnyModel): WidgetHost {
  const waiting: Map<string, { resolve(answer: any): void; reject(error: Error): void }> = new Map();
  let counted = 0;
  function receive(message: Message, buffers: (ArrayBuffer | ArrayBufferView<ArrayBuffer>)[]) {
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

/** Returns a copy of the bytes of a view, in a buffer of its own. */
function copied(view: ArrayBuffer | ArrayBufferView<ArrayBuffer>) {
  if (view instanceof ArrayBuffer) return view;
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}
