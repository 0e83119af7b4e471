import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { cpuSecondsOf } from "@devplat/testkit";

/** A `node:http` server in a process of its own that reads each request and sends one fixed response. */
export interface BareServer {
  readonly url: string;
  readonly cpuSeconds: () => number;
  stop(): Promise<void>;
}

/** Starts the server. @param body of each response. @param type its `Content-Type` */
export async function startBareServer(body: Buffer, type: string): Promise<BareServer> {
  const child = fork(import.meta.filename, [], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  child.send({ body: body.toString("base64"), type });
  const [{ port }] = (await once(child, "message")) as [{ port: number }];
  const pid = child.pid ?? 0;
  return {
    url: `http://127.0.0.1:${port}`,
    cpuSeconds: () => cpuSecondsOf(pid).own,
    stop: async () => {
      const ended = once(child, "exit");
      child.kill();
      await ended;
    },
  };
}

/** Runs the server in this process. */
function serve(body: Buffer, type: string): void {
  const respond = (response: ServerResponse): void => {
    response.writeHead(200, { "Content-Type": type, "Content-Length": body.length });
    response.end(body);
  };
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    request.resume();
    request.once("end", () => respond(response));
  });
  server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
}

if (process.argv[1] === import.meta.filename) {
  process.once("message", ({ body, type }: { body: string; type: string }) =>
    serve(Buffer.from(body, "base64"), type),
  );
}
