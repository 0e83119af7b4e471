import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { gitEnvironment, run, type Finished } from "@devplat/testkit";

export const SCRIPT = join(import.meta.dirname, "../../apps/svc/src/seed-client/svc-seed.sh");

/** Shells that run the script. */
export const SHELLS = [
  ["dash", "dash"],
  ["busybox sh", "busybox", "sh"],
  ["bash", "bash", "--posix"],
] as const;

export interface SeedClientOptions {
  /** Command before the script. Default `sh`. */
  readonly shell?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** Runs the script svc-seed as a user does, without settings of this machine. */
export async function runSeedClient(
  args: readonly string[],
  { shell = ["sh"], env = {}, cwd }: SeedClientOptions = {},
): Promise<Finished> {
  const [command = "", ...more] = [...shell, SCRIPT, ...args];
  const cwdOption = cwd === undefined ? {} : { cwd };
  return run(command, more, { env: gitEnvironment(env), timeoutMs: 120_000, ...cwdOption });
}

/** The fault of one response. */
export interface ResponseFault {
  /** In place of the response. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The connection ends after so many bytes of the body. */
  readonly cutAfter?: number;
  /** This byte of the body is another one. */
  readonly flipAt?: number;
  /** Nothing follows so many bytes of the body, and the connection stays. */
  readonly stallAfter?: number;
  /** Changes the body, whose length is not announced then. */
  readonly change?: (body: string) => string;
  /** Zeroes without an end follow the body. */
  readonly isEndless?: boolean;
}

export interface FaultyRelay {
  readonly url: string;
  /** Paths that were asked for, with their ranges. */
  readonly asked: string[];
  /** Bytes of endless bodies that were sent. */
  surplus: number;
  /** Called for each request. */
  fault: (path: string, range: string | undefined) => ResponseFault | undefined;
  /** Ends the connections of responses that stalled. */
  endStalled(): void;
  stop(): void;
}

/** An HTTP relay before the service, whose responses can be damaged. */
export async function startFaultyRelay(target: string): Promise<FaultyRelay> {
  const { hostname, port } = new URL(target);
  const server = createServer((request, response) => {
    const { url: path = "", headers, method } = request;
    relay.asked.push([path, headers.range].filter((part) => part !== undefined).join(" "));
    const fault = relay.fault(path, headers.range);
    if (fault?.status !== undefined) {
      request.resume();
      response.writeHead(fault.status, fault.headers).end(fault.body);
      return;
    }
    const upstream = httpRequest({ hostname, port, path, method, headers }, (answer) => {
      if (fault?.change !== undefined || fault?.isEndless === true) {
        delete answer.headers["content-length"];
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        void sendOther(answer, response, fault, (bytes) => (relay.surplus += bytes));
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      let sent = 0;
      answer.on("data", (data: Buffer) => {
        const { flipAt, cutAfter, stallAfter } = fault ?? {};
        if (stallAfter !== undefined && sent + data.length > stallAfter) {
          stalled.add(response);
          if (sent < stallAfter) response.write(data.subarray(0, stallAfter - sent));
          sent = stallAfter;
          return;
        }
        if (flipAt !== undefined && flipAt >= sent && flipAt < sent + data.length) {
          const at = flipAt - sent;
          data.writeUInt8(data.readUInt8(at) ^ 1, at);
        }
        const left = Math.max(0, (cutAfter ?? Infinity) - sent);
        sent += data.length;
        if (data.length <= left) response.write(data);
        else response.write(data.subarray(0, left), () => response.socket?.destroySoon());
      });
      answer.on("end", () => fault?.stallAfter ?? response.end());
    });
    upstream.on("error", () => response.destroy());
    request.pipe(upstream);
  });
  const stalled = new Set<ServerResponse>();
  const relay: FaultyRelay = {
    url: "",
    asked: [],
    surplus: 0,
    fault: () => undefined,
    endStalled: () => {
      for (const response of stalled) response.destroy();
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(relay, { url: address });
}

async function sendOther(
  answer: IncomingMessage,
  response: ServerResponse,
  { change = (body) => body, isEndless = false }: ResponseFault,
  onSurplus: (bytes: number) => void,
): Promise<void> {
  response.write(change(await text(answer)));
  const zeroes = Buffer.alloc(65_536);
  if (!isEndless) {
    response.end();
    return;
  }
  while (!response.destroyed) {
    onSurplus(zeroes.length);
    if (!response.write(zeroes)) await Promise.race([once(response, "drain"), once(response, "close")]);
  }
}
