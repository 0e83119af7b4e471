import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { it } from "node:test";
import { AGENT_LAUNCHER, spawnGroup, tempFolder, until } from "@devplat/testkit";
import { Home } from "./agent-stand.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 120_000;

/** Replaces systemd: prints each message in one line. */
const SERVICE_MANAGER = `
import socket, sys
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(sys.argv[1])
print("bound", flush=True)
while True: print(manager.recv(4096).decode().replace("\\n", " "), flush=True)
`;

it(
  "a stop during the start is told to the service manager, and no READY follows",
  {
    timeout: TIMEOUT_MS,
    skip: process.platform !== "linux" && "datagrams of systemd",
  },
  async () => {
    const folder = await tempFolder("agent-stop-during-start");
    const path = join(folder.path, "notify");
    const manager = spawn("python3", ["-c", SERVICE_MANAGER, path], { stdio: ["ignore", "pipe", "inherit"] });
    const managerEnd = once(manager, "exit");
    let messages = "";
    manager.stdout.on("data", (chunk: Buffer) => (messages += chunk.toString()));
    const fleet = createServer().listen(0, "127.0.0.1");
    try {
      await once(fleet, "listening");
      await until(() => messages !== "");
      const place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
      const { port } = fleet.address() as AddressInfo;
      await place.configure(
        `store: { driver: embedded }\nremote_config: { url: "http://127.0.0.1:${port}/c.yaml" }\n`,
      );
      const child = spawnGroup("sh", ["-c", 'exec "$0" run', AGENT_LAUNCHER], {
        env: { ...place.env, NOTIFY_SOCKET: path, WATCHDOG_USEC: "3000000" },
        stdio: ["ignore", "ignore", "inherit"],
      });
      const ended = once(child, "close") as Promise<[number | null]>;
      // The start waits for the response.
      const [, response] = (await once(fleet, "request")) as [unknown, ServerResponse];
      child.kill("SIGTERM");
      await until(() => messages.includes("STOPPING=1"));
      response.writeHead(404).end();
      assert.deepEqual(await ended, [0, null]);
      manager.kill("SIGKILL");
      await managerEnd;
      assert.doesNotMatch(messages, /READY|WATCHDOG/);
    } finally {
      manager.kill("SIGKILL");
      fleet.closeAllConnections();
      fleet.close();
      await folder.remove();
    }
  },
);
