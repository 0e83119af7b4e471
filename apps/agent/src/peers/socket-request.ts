import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";

/** A token, a status or an action's outcome; more is no answer of a daemon. In characters. */
const MAX_ANSWER = 1024 * 1024;

export interface SocketRequest {
  readonly socketPath: string;
  /** Default GET. */
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends it; a deadline belongs into it. */
  readonly signal: AbortSignal;
}

export interface SocketAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * One exchange over a Unix socket, with node:http: loading another client costs the command line more than all else.
 * Rejects with a system error where nobody answers.
 */
export async function requestOverSocket(options: SocketRequest): Promise<SocketAnswer> {
  const { socketPath, method = "GET", path, headers, body, signal } = options;
  const outgoing = request({
    socketPath,
    method,
    path,
    signal,
    headers: { host: "localhost", ...headers },
    agent: false,
  });
  // A signal that has fired already ends the request before anybody waits for it.
  outgoing.on("error", () => undefined);
  outgoing.end(body);
  const [incoming] = (await once(outgoing, "response", { signal })) as [IncomingMessage];
  let length = 0;
  incoming.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > MAX_ANSWER) incoming.destroy(new Error("the answer is too long"));
  });
  return { status: incoming.statusCode ?? 0, body: await text(incoming) };
}
