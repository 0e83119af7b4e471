import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ServiceManager } from "./service-manager.ts";

/** A socket for datagrams, which Node cannot open. It prints the length and the text of each one. */
const RECEIVER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1].replace("@", "\\0", 1) if sys.argv[1].startswith("@") else sys.argv[1])
print("bound", flush=True)
while True:
    print(s.recv(65536).decode().replace("\\n", "|"), flush=True)
`;

async function receive(path: string, send: () => Promise<void>, count: number): Promise<string[]> {
  const child = spawn("python3", ["-c", RECEIVER, path], { stdio: ["ignore", "pipe", "inherit"] });
  const gone = once(child, "exit");
  try {
    let text = "";
    for await (const chunk of child.stdout.setEncoding("utf8") as AsyncIterable<string>) {
      if (text === "") await send();
      text += chunk;
      if (text.split("\n").length > count + 1) break;
    }
    return text.split("\n").slice(1, -1);
  } finally {
    child.kill("SIGKILL");
    await gone;
  }
}

describe("ServiceManager", { skip: process.platform !== "linux" && "datagrams of systemd" }, () => {
  for (const kind of ["path", "abstract name"] as const) {
    it(`sends its messages to the socket with a ${kind}`, async () => {
      const folder = await mkdtemp(join(tmpdir(), "service manager "));
      const path = kind === "path" ? join(folder, "notify") : `@devplat-test-${process.pid}`;
      const environment = {
        NOTIFY_SOCKET: path,
        WATCHDOG_USEC: "3000000",
        WATCHDOG_PID: "7",
        OTHER: "stays",
      };
      const manager = await ServiceManager.find(environment, 7);
      assert.deepEqual(environment, { OTHER: "stays" });
      assert.equal(manager.watchdogMs, 3000);
      const sendAll = async (): Promise<void> => {
        manager.ready("listens\non 8080\0");
        manager.alive();
        manager.reloading();
        manager.stopping(1500);
        // A start or a reload that ends after the stop has begun.
        manager.reloading();
        manager.ready("late");
        manager.status("closing");
      };
      try {
        const [ready, alive, reloading = "", stopping, after] = await receive(path, sendAll, 5);
        assert.equal(ready, "READY=1|STATUS=listens on 8080 ");
        assert.equal(alive, "WATCHDOG=1");
        assert.match(reloading, /^RELOADING=1\|MONOTONIC_USEC=\d+$/);
        assert.equal(stopping, "STOPPING=1|EXTEND_TIMEOUT_USEC=1500000|STATUS=stopping");
        assert.equal(after, "STATUS=closing");
      } finally {
        await rm(folder, { recursive: true });
      }
    });
  }

  for (const [title, environment] of [
    ["no service manager", {}],
    ["a socket that is not there", { NOTIFY_SOCKET: "/nonexistent/notify" }],
    ["a relative path", { NOTIFY_SOCKET: "notify" }],
    ["a path that is too long", { NOTIFY_SOCKET: `/${"x".repeat(200)}` }],
    ["a socket of a virtual machine", { NOTIFY_SOCKET: "vsock:2:1234" }],
  ] as const) {
    it(`does nothing with ${title}`, async () => {
      const manager = await ServiceManager.find({ ...environment });
      assert.doesNotThrow(() => manager.ready("here"));
    });
  }

  for (const [title, watchdog, expected] of [
    ["of another process", { WATCHDOG_USEC: "3000000", WATCHDOG_PID: "8" }, undefined],
    ["without a process", { WATCHDOG_USEC: "3000000" }, 3000],
    ["of no time", { WATCHDOG_USEC: "0" }, undefined],
    ["that is not a number", { WATCHDOG_USEC: "3s" }, undefined],
  ] as const) {
    it(`reads a watchdog ${title}`, async () => {
      const manager = await ServiceManager.find({ NOTIFY_SOCKET: "/run/notify", ...watchdog }, 7);
      assert.equal(manager.watchdogMs, expected);
    });
  }
});
