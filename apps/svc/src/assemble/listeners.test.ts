import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { ClientAddresses } from "../http/request/client-address.ts";
import { createWebServer, type WebServer } from "../http/server/web-server.ts";
import { Listening } from "./listeners.ts";
import { OwnAddress } from "../own-address.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-listening-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const answering = (): WebServer =>
  createWebServer({
    addresses: new ClientAddresses(undefined),
    accept: (_request, response) => void response.end("here"),
  });
const listening = (): Listening => new Listening(answering, "server.listen");

async function ask(
  options: { readonly socketPath: string } | { readonly host: string; readonly port: number },
): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ ...options, agent: false }, (answer) => {
      answer.setEncoding("utf8").on("data", resolve);
    }).on("error", reject);
  });
}

describe("Listening", () => {
  it("loopback only: both loopback addresses get the same port, and no other address", async () => {
    const both = listening();
    const port = await both.open({ kind: "tcp", host: undefined, port: 0 }, true);
    assert.equal(await ask({ host: "127.0.0.1", port }), "here");
    assert.equal(await ask({ host: "::1", port }), "here");
    await both.close(0);
    await assert.rejects(ask({ host: "127.0.0.1", port }), { code: "ECONNREFUSED" });
  });

  it("localhost binds both addresses, or fails and leaves nothing bound", async () => {
    const both = listening();
    const port = await both.open({ kind: "tcp", host: "localhost", port: 0 }, false);
    assert.equal(await ask({ host: "127.0.0.1", port }), "here");
    assert.equal(await ask({ host: "::1", port }), "here");
    await both.close(0);
    const other = listening();
    const taken = await other.open({ kind: "tcp", host: "::1", port: 0 }, false);
    await assert.rejects(listening().open({ kind: "tcp", host: "localhost", port: taken }, false), {
      message: `Cannot listen on [::1]:${taken}: another program listens there`,
    });
    await assert.rejects(ask({ host: "127.0.0.1", port: taken }), { code: "ECONNREFUSED" });
    await other.close(0);
  });

  it("a Unix socket is for the user and its group; a leftover one is replaced", async () => {
    const path = join(folder, "left.sock");
    const leave = `require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))`;
    assert.equal(spawnSync(process.execPath, ["-e", leave, path]).signal, "SIGKILL");
    assert.ok(statSync(path).isSocket());
    const first = listening();
    await first.open({ kind: "unix", path }, false);
    assert.equal(statSync(path).mode & 0o777, 0o660);
    assert.equal(await ask({ socketPath: path }), "here");
    await assert.rejects(listening().open({ kind: "unix", path }, false), {
      code: "listen_failed",
      message: `Cannot listen on unix:${path}: another program listens there`,
    });
    await first.close(0);
  });

  it("an address that is taken, or not of this machine, is named", async () => {
    const first = listening();
    const port = await first.open({ kind: "tcp", host: "127.0.0.1", port: 0 }, false);
    await assert.rejects(listening().open({ kind: "tcp", host: "127.0.0.1", port }, false), {
      message: `Cannot listen on 127.0.0.1:${port}: another program listens there`,
      hint: "Free it, or choose another address with server.listen.",
    });
    await assert.rejects(listening().open({ kind: "tcp", host: "192.0.2.1", port: 0 }, false), {
      message: "Cannot listen on 192.0.2.1:0: this machine does not have that address",
    });
    await first.close(0);
  });
});

describe("OwnAddress", () => {
  it("is the configured address, or that of the listener", () => {
    const shown = (host: string | undefined): string => {
      const address = new OwnAddress(undefined);
      address.bound(8123, host);
      return address.baseUrl;
    };
    assert.equal(shown(undefined), "http://localhost:8123");
    assert.equal(shown("::"), "http://localhost:8123");
    assert.equal(shown("localhost"), "http://localhost:8123");
    assert.equal(shown("0.0.0.0"), "http://127.0.0.1:8123");
    assert.equal(shown("127.0.0.1"), "http://127.0.0.1:8123");
    assert.equal(shown("::1"), "http://[::1]:8123");
    assert.equal(shown("192.0.2.1"), "http://192.0.2.1:8123");
    assert.equal(new OwnAddress("https://git.example").isHttps, true);
  });

  it("own origins are the base address, and a loopback address that was asked", () => {
    const address = new OwnAddress("https://git.example");
    assert.deepEqual(address.origins("git.example"), ["https://git.example"]);
    assert.deepEqual(address.origins("127.0.0.1:8080"), ["https://git.example", "http://127.0.0.1:8080"]);
    assert.deepEqual(address.origins("evil.example"), ["https://git.example"]);
    assert.equal(address.isOwnHost("GIT.example"), true);
    assert.equal(address.isOwnHost("127.0.0.1.evil.example"), false);
    assert.equal(address.isOwnHost(undefined), false);
  });
});
