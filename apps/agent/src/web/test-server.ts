import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { request, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import type { Logger } from "@devplat/base";
import { MemoryView } from "./memory-view.ts";
import type { PortGuard } from "./port-guard.ts";
import { WebServer, type WebServerOptions } from "./server.ts";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

/** A web server over a {@link MemoryView} on a free port, for tests. */
export interface TestServer {
  readonly url: string;
  readonly host: string;
  readonly runtimeFolder: string;
  readonly view: MemoryView;
  /** Log messages of level warn and error. */
  readonly warnings: string[];
  send(path: string, options?: RequestOptions): Promise<Answer>;
  /** Opens a request and leaves its body to the caller. */
  open(path: string, headers?: Record<string, string>): Promise<IncomingMessage>;
  /** Bytes as they are, and all that comes back until the server closes. */
  raw(bytes: string): Promise<string>;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startTestServer(
  options: Partial<Pick<WebServerOptions, "requireUnlock" | "clock" | "texts">> & {
    guard?: PortGuard;
    listen?: string;
  } = {},
): Promise<TestServer> {
  const runtimeFolder = await mkdtemp(join(tmpdir(), "agent-web-"));
  const view = new MemoryView();
  const warnings: string[] = [];
  const { listen = "127.0.0.1:0", requireUnlock = "auto", ...rest } = options;
  const logger = collect(warnings);
  const server = new WebServer({ view, listen, requireUnlock, runtimeFolder, logger, ...rest });
  const url = await server.listen();
  const { host, hostname, port } = new URL(url);
  const address = hostname.replaceAll(/[[\]]/g, "");
  const abort = new AbortController();
  const running = server.run(abort.signal);

  const open = async (
    path: string,
    { method = "GET", headers = {}, body }: RequestOptions = {},
  ): Promise<IncomingMessage> => {
    const outgoing = request({ host: address, port, path, method, headers: { Host: host, ...headers } });
    outgoing.on("error", () => undefined);
    outgoing.end(body);
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    return incoming;
  };
  const stop = async (): Promise<void> => {
    abort.abort();
    await running;
    await rm(runtimeFolder, { recursive: true, force: true });
  };
  return {
    url,
    host,
    runtimeFolder,
    view,
    warnings,
    open: (path, headers = {}) => open(path, { headers }),
    send: async (path, sending = {}) => {
      const incoming = await open(path, sending);
      return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: await text(incoming) };
    },
    raw: async (bytes) => {
      const socket = connect(Number(port), address);
      socket.write(bytes);
      return (await buffer(socket)).toString("latin1");
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function collect(warnings: string[]): Logger {
  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_fields, message) => void warnings.push(message),
    error: (_fields, message) => void warnings.push(message),
    child: () => logger,
  };
  return logger;
}
