import type { Dispatcher, WebSocket } from "undici";

/** Maximum unread messages. With more, the reader is too slow and the stream ends. */
const MAX_WAITING = 1000;

/**
 * Reads the messages of a WebSocket (RFC 6455) until the signal fires.
 * @param dispatcher opens the connection, with its TLS settings and proxy
 * @param opened called when the connection is open
 * @throws Error if it cannot be opened, or ends
 */
export async function* socketMessages(
  url: string,
  headers: Readonly<Record<string, string>>,
  dispatcher: Dispatcher,
  signal: AbortSignal,
  opened: () => void,
): AsyncGenerator<string> {
  const { WebSocket: Socket } = await import("undici");
  if (signal.aborted) return;
  const socket: WebSocket = new Socket(url.replace(/^http/, "ws"), { dispatcher, headers });
  const waiting: string[] = [];
  const state = { ended: false };
  let wake = (): void => undefined;
  const end = (): void => {
    state.ended = true;
    wake();
  };
  socket.addEventListener("open", opened);
  socket.addEventListener("message", ({ data }) => {
    // Vault sends JSON as text. Other messages are not events.
    if (typeof data === "string") waiting.push(data);
    if (waiting.length > MAX_WAITING) end();
    wake();
  });
  socket.addEventListener("error", end);
  socket.addEventListener("close", end);
  signal.addEventListener("abort", end, { once: true });
  try {
    while (!state.ended) {
      const next = waiting.shift();
      if (next === undefined) await new Promise<void>((resolve) => (wake = resolve));
      else yield next;
    }
    if (!signal.aborted) throw new Error("the event stream ended");
  } finally {
    signal.removeEventListener("abort", end);
    socket.close();
  }
}
