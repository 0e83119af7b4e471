import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createConnection } from "node:net";
import { text } from "node:stream/consumers";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { run } from "@devplat/testkit";
import { VolumeError } from "../errors/volume-error.ts";
import type { VolumeDriver } from "./plugin-protocol.ts";
import { PluginServer } from "./plugin-server.ts";

let folder: string;
let server: PluginServer;
const calls: unknown[] = [];
let mounted = Promise.withResolvers<string>();

const driver: VolumeDriver = {
  create: async (...args) => void calls.push(args),
  remove: async () => {
    throw new VolumeError("volume_in_use", "it is mounted", { hint: "Wait." });
  },
  mount: async () => await mounted.promise,
  unmount: async () => {
    throw new Error("planted text of a fault");
  },
  get: (name) => ({ name, mountpoint: `/volumes/${name}` }),
  list: () => [{ name: "app", mountpoint: "/volumes/app" }],
};

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "plugin-"));
  server = new PluginServer({
    path: join(folder, "own/docker.sock"),
    descriptor: undefined,
    driver,
    logger: silentLogger,
  });
  await server.start();
});
after(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

async function call(
  path: string,
  body = "",
  ...more: string[]
): Promise<{ status: number; type: string; body: unknown }> {
  const args = [
    "--silent",
    "--unix-socket",
    server.path,
    "--write-out",
    "\n%{http_code} %{content_type}",
    "-X",
    "POST",
    "--data-binary",
    "@-",
    ...more,
  ];
  const { stdout } = await run("curl", [...args, `http://localhost${path}`], { input: body });
  const [, document = "", status, type = ""] = /^(.*)\n(\d+) (.*)$/s.exec(stdout) ?? [];
  return { status: Number(status), type, body: JSON.parse(document) };
}

describe("the volume plugin protocol", () => {
  const TYPE = "application/vnd.docker.plugins.v1.1+json";

  it("answers the calls without a volume, also with an empty body or null", async () => {
    for (const body of ["", "{}"]) {
      assert.deepEqual(await call("/Plugin.Activate", body), {
        status: 200,
        type: TYPE,
        body: { Implements: ["VolumeDriver"], Err: "" },
      });
      assert.deepEqual((await call("/VolumeDriver.Capabilities", body)).body, {
        Capabilities: { Scope: "local" },
        Err: "",
      });
      assert.deepEqual((await call("/VolumeDriver.List", body)).body, {
        Volumes: [{ Name: "app", Mountpoint: "/volumes/app", Status: {} }],
        Err: "",
      });
    }
    assert.equal((await call("/Plugin.Activate", "null")).status, 200);
  });

  it("passes name, options and engine on", async () => {
    await call("/VolumeDriver.Create", '{"Name":"app","Opts":{"secrets":"a"}}');
    await call("/VolumeDriver.Create", '{"Name":"app","Opts":null}');
    assert.deepEqual(calls, [
      ["app", { secrets: "a" }, { isRootful: true }],
      ["app", {}, { isRootful: true }],
    ]);
    assert.deepEqual((await call("/VolumeDriver.Get", '{"Name":"app"}')).body, {
      Volume: { Name: "app", Mountpoint: "/volumes/app", Status: {} },
      Err: "",
    });
    assert.deepEqual((await call("/VolumeDriver.Path", '{"Name":"app"}')).body, {
      Mountpoint: "/volumes/app",
      Err: "",
    });
  });

  it("gives a refusal as Err, and of a fault no text", async () => {
    assert.deepEqual(await call("/VolumeDriver.Remove", '{"Name":"app"}'), {
      status: 500,
      type: TYPE,
      body: { Err: "it is mounted. Wait." },
    });
    assert.deepEqual((await call("/VolumeDriver.Unmount", '{"Name":"app","ID":"1"}')).body, {
      Err: "internal error (Error)",
    });
  });

  it("refuses what is not a call", async () => {
    const table: [number, Promise<{ status: number; body: unknown }>][] = [
      [404, call("/VolumeDriver.Format", "{}")],
      [404, call("/__proto__", "{}")],
      [405, call("/Plugin.Activate", "", "-X", "GET")],
      [400, call("/VolumeDriver.Get", "{")],
      [400, call("/VolumeDriver.Get", "[]")],
      [400, call("/VolumeDriver.Get", '{"Name":1}')],
      [400, call("/VolumeDriver.Create", '{"Name":"app","Opts":{"a":1}}')],
      [400, call("/VolumeDriver.Mount", '{"Name":"app"}')],
      [400, call("/VolumeDriver.Mount", '{"Name":"app","ID":""}')],
      [413, call("/VolumeDriver.Get", JSON.stringify({ Name: "x".repeat(1024 * 1024) }))],
    ];
    for (const [status, response] of table) {
      const seen = await response;
      assert.equal(seen.status, status, JSON.stringify(seen.body));
      assert.match((seen.body as { Err: string }).Err, /\S/);
    }
    const garbage = createConnection(server.path);
    garbage.end("no HTTP at all\r\n\r\n");
    assert.match(await text(garbage), /^HTTP\/1\.1 400 /);
  });

  it("is idle only when no call is served", async () => {
    await server.idle();
    const first = call("/VolumeDriver.Mount", '{"Name":"app","ID":"1"}');
    const second = call("/VolumeDriver.Get", '{"Name":"app"}');
    await second;
    let isIdle = false;
    const idle = server.idle().then(() => (isIdle = true));
    await call("/Plugin.Activate");
    assert.equal(isIdle, false);
    mounted.resolve("/volumes/app");
    assert.deepEqual((await first).body, { Mountpoint: "/volumes/app", Err: "" });
    await idle;
    mounted = Promise.withResolvers();
  });
});
