import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { silentLogger, systemClock } from "@devplat/base";
import { PeerPool } from "./peer-pool.ts";

let home = "";
const servers: Server[] = [];
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "peers-"));
  await mkdir(join(home, ".ssh"), { mode: 0o700 });
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  await rm(home, { recursive: true, force: true });
});

/** A peer's socket; `body` undefined never answers. */
async function peer(name: string, status: number, body: string | undefined): Promise<{ asked(): number }> {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    if (body !== undefined) response.writeHead(status).end(body);
  });
  server.listen(join(home, ".ssh", name));
  servers.push(server);
  await once(server, "listening");
  return { asked: () => asked };
}

function pool(patterns = ["~/.ssh/daemon.sock", "~/.ssh/daemon.*.sock"]) {
  let time = 0;
  const clock = { ...systemClock, monotonic: () => time };
  const subject = new PeerPool({ patterns, home, clock, logger: silentLogger });
  return {
    pass: (ms: number) => (time += ms),
    async tokens(): Promise<string[]> {
      const found: string[] = [];
      for await (const { token } of subject.borrow(new AbortController().signal)) found.push(token.reveal());
      return found.toSorted();
    },
  };
}
const lends = (token: string): string => JSON.stringify({ token, expires_at: null });

describe("PeerPool", () => {
  it("asks every socket that matches a pattern, and nothing else", async () => {
    await peer("daemon.sock", 200, lends("one"));
    await peer("daemon.host.sock", 200, lends("two"));
    const foreign = await peer("other.sock", 200, lends("three"));
    assert.deepEqual(await pool().tokens(), ["one", "two"]);
    assert.deepEqual(await pool([]).tokens(), []);
    assert.equal(foreign.asked(), 0);
  });

  it("passes over a peer without a token and one that answers nonsense, and asks them again", async () => {
    const without = await peer("daemon.a.sock", 401, "{}");
    const nonsense = await peer("daemon.b.sock", 200, "hello");
    const subject = pool();
    for (let i = 0; i < 2; i++) assert.deepEqual(await subject.tokens(), []);
    assert.deepEqual([without.asked(), nonsense.asked()], [2, 2]);
  });

  it("leaves one that cannot be reached alone for five minutes, unless its socket is made anew", async () => {
    await peer("daemon.sock", 200, lends("one"));
    await rename(join(home, ".ssh/daemon.sock"), join(home, ".ssh/kept"));
    servers.pop()?.close();
    await rename(join(home, ".ssh/kept"), join(home, ".ssh/daemon.sock")).catch(() => undefined);
    const subject = pool();
    assert.deepEqual(await subject.tokens(), []);
    await rm(join(home, ".ssh/daemon.sock"), { force: true });
    await peer("daemon.sock", 200, lends("anew"));
    subject.pass(5 * 60_000);
    assert.deepEqual(await subject.tokens(), ["anew"]);
  });

  it("takes nothing from a folder that others can write", async () => {
    const asked = await peer("daemon.sock", 200, lends("one"));
    await chmod(join(home, ".ssh"), 0o770);
    assert.deepEqual(await pool().tokens(), []);
    assert.equal(asked.asked(), 0);
  });
});
