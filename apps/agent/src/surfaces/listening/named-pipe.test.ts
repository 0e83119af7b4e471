import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createConnection, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { findPlaces } from "../../agent-files/places.ts";
import { testPrograms } from "../../desktop/programs.test-kit.ts";
import { parseConfig } from "../../config/load.ts";
import { platformOf } from "../../platform/platform.ts";
import { apiSocketPath, peerSocketPath, sshAgentSocketPath } from "../socket/places.ts";
import { listenOnPipe, restrictByPowershell } from "./named-pipe.ts";
import { isPipeName, pipeName } from "./pipe-name.ts";
import { listenOnPath } from "./socket-place.ts";

const placesOn = (system: NodeJS.Platform, folder: string) =>
  findPlaces({ HOME: "C:\\h", XDG_RUNTIME_DIR: folder }, platformOf(system));

describe("addresses on Windows", () => {
  const { api, agent } = parseConfig({
    path: "c.yaml",
    text: "store: {driver: embedded}\napi: {enabled: true}\n",
  });

  it("are three pipes with different names, without the user's name", () => {
    const places = placesOn("win32", "C:\\Users\\ada");
    const names = [
      apiSocketPath(places, api),
      peerSocketPath(places, api) ?? "",
      sshAgentSocketPath(places, agent),
    ];
    for (const name of names) {
      assert.match(name, /^\\\\\.\\pipe\\daemon-[0-9a-f]{16}-(?:api|peer|ssh-agent)$/);
      assert.ok(isPipeName(name));
    }
    assert.equal(new Set(names).size, 3);
  });

  it("depend on the runtime folder, but not on its letter case", () => {
    assert.equal(pipeName("C:\\Users\\ADA", "x"), pipeName("c:\\users\\ada", "x"));
    assert.notEqual(pipeName("C:\\Users\\ada", "x"), pipeName("C:\\Users\\bob", "x"));
  });

  it("of the configuration are taken as they are", () => {
    const text = "store: {driver: embedded}\napi: {enabled: true, unix: {path: '\\\\.\\pipe\\mine'}}\n";
    const config = parseConfig({ path: "c.yaml", text });
    assert.equal(apiSocketPath(placesOn("win32", "C:\\r"), config.api), "\\\\.\\pipe\\mine");
  });
});

// Node has one interface for both, so a Unix socket takes the place of the pipe here.
describe("the contract of an address", () => {
  const ways: [
    name: string,
    listen: (server: Server, path: string) => Promise<{ remove(): Promise<void> }>,
  ][] = [
    ["listenOnPath", listenOnPath],
    ["listenOnPipe", (server, path) => listenOnPipe(server, path, async () => true)],
  ];
  for (const [name, listen] of ways) {
    it(`${name} serves clients, and refuses a second server`, async () => {
      const folder = await mkdtemp(join(tmpdir(), "agent-pipe-"));
      const path = join(folder, "own.sock");
      const server = createServer((socket) => socket.on("error", () => undefined).end("hello"));
      const placed = await listen(server, path);
      const second = createServer();
      await assert.rejects(listen(second, path), { code: "socket_in_use" });
      assert.equal(second.listening, false);
      const [answer] = (await once(createConnection(path), "data")) as [Buffer];
      assert.equal(String(answer), "hello");
      await placed.remove();
      server.close();
      await rm(folder, { recursive: true, force: true });
    });
  }

  it("a pipe whose access list cannot be changed is closed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "agent-pipe-"));
    const server = createServer();
    const listening = listenOnPipe(server, join(folder, "p"), async () => false);
    await assert.rejects(listening, { code: "socket_refused", message: /access list/ });
    assert.equal(server.listening, false);
    await rm(folder, { recursive: true, force: true });
  });
});

describe("restrictByPowershell", () => {
  it("passes the name outside of the script, and gives the user alone full control", async () => {
    await using programs = await testPrograms();
    await programs.add("powershell.exe");
    const restrict = restrictByPowershell({ PATH: programs.path, AGENT_TOKEN: "hidden" });
    assert.equal(await restrict("\\\\.\\pipe\\daemon-'x"), true);
    const words = Buffer.from(await programs.got("powershell.exe", "input"), "base64").toString();
    assert.deepEqual(JSON.parse(words), { name: "daemon-'x" });
    const args = (await programs.got("powershell.exe", "args")).trim().split("\n");
    const script = Buffer.from(args.at(-1) ?? "", "base64").toString("utf16le");
    assert.match(script, /SetAccessRuleProtection\(\$true, \$false\)/);
    assert.equal(script.match(/AddAccessRule/g)?.length, 1);
    assert.doesNotMatch(script, /daemon-/);
    assert.equal(await programs.got("powershell.exe", "token"), "");
  });

  it("fails with the script, and without PowerShell", async () => {
    await using programs = await testPrograms();
    await programs.add("powershell.exe", "exit 1");
    assert.equal(await restrictByPowershell({ PATH: programs.path })("\\\\.\\pipe\\x"), false);
    assert.equal(await restrictByPowershell({ PATH: "/nonexistent" })("\\\\.\\pipe\\x"), false);
  });
});
