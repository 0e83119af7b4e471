import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, rename, rm, utimes } from "node:fs/promises";
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

interface Peer {
  asked(): number;
  status: number;
  /** Undefined breaks the connection. */
  answer: string | undefined;
}

async function peer(name: string, status: number, answer: string | undefined): Promise<Peer> {
  let asked = 0;
  const made: Peer = { asked: () => asked, status, answer };
  const server = createServer((request, response) => {
    asked += 1;
    if (made.answer === undefined) request.destroy();
    else response.writeHead(made.status).end(made.answer);
  });
  server.listen(join(home, ".ssh", name));
  servers.push(server);
  await once(server, "listening");
  return made;
}

function pool(patterns = ["~/.ssh/daemon.sock", "~/.ssh/daemon.*.sock"], isCommand = false) {
  let time = 0;
  const waitedFor: string[] = [];
  const clock = {
    ...systemClock,
    monotonic: () => time,
    sleep: async (ms: number) => void (time += ms),
  };
  const onWaiting = isCommand ? (name: string): void => void waitedFor.push(name) : undefined;
  const subject = new PeerPool({ patterns, home, onWaiting, clock, logger: silentLogger });
  return {
    subject,
    waitedFor,
    pass: (ms: number) => (time += ms),
    time: () => time,
    /** Why peers lend nothing. */
    refusals: async (): Promise<string[]> => {
      const found: string[] = [];
      for await (const each of subject.borrow(new AbortController().signal)) {
        if ("refusal" in each) found.push(each.refusal.message);
      }
      return found;
    },
    /** The tokens that are lent, in their order. */
    tokens: async (signal = new AbortController().signal): Promise<string[]> => {
      const found: string[] = [];
      for await (const each of subject.borrow(signal)) {
        if ("token" in each) found.push(each.token.reveal());
      }
      return found;
    },
  };
}
const lends = (token: string): string => JSON.stringify({ token, expires_at: null });

describe("PeerPool", () => {
  it("asks every socket that matches a pattern, and nothing else [agent 4.10]", async () => {
    await peer("daemon.sock", 200, lends("one"));
    await peer("daemon.host.sock", 200, lends("two"));
    const foreign = await peer("other.sock", 200, lends("three"));
    assert.deepEqual((await pool().tokens()).toSorted(), ["one", "two"]);
    assert.deepEqual(await pool([]).tokens(), []);
    assert.equal(foreign.asked(), 0);
  });

  it("skips a peer without a token or with a wrong response, and asks it again later [agent 10.33]", async () => {
    const without = await peer("daemon.a.sock", 401, "{}");
    const nonsense = await peer("daemon.b.sock", 200, "hello");
    const subject = pool();
    for (let i = 0; i < 2; i++) assert.deepEqual(await subject.tokens(), []);
    assert.deepEqual([without.asked(), nonsense.asked()], [2, 2]);
  });

  it("asks the one that answered last first, and before any answer the one made last [agent 10.32]", async () => {
    await peer("daemon.old.sock", 200, lends("old"));
    await peer("daemon.new.sock", 200, lends("new"));
    await utimes(join(home, ".ssh/daemon.old.sock"), 1000, 1000);
    const subject = pool();
    assert.deepEqual(await subject.tokens(), ["new", "old"]);
    subject.pass(1000);
    // The newer one is silent for once.
    await rename(join(home, ".ssh/daemon.new.sock"), join(home, ".ssh/away"));
    assert.deepEqual(await subject.tokens(), ["old"]);
    await rename(join(home, ".ssh/away"), join(home, ".ssh/daemon.new.sock"));
    assert.deepEqual(await subject.tokens(), ["old", "new"]);
  });

  it("leaves one that cannot be reached alone for five minutes [agent 10.33]", async () => {
    const flaky = await peer("daemon.sock", 200, undefined);
    const subject = pool();
    assert.deepEqual(await subject.tokens(), []);
    flaky.answer = lends("one");
    subject.pass(5 * 60_000 - 1);
    assert.deepEqual([await subject.tokens(), flaky.asked()], [[], 1]);
    subject.pass(1);
    assert.deepEqual([await subject.tokens(), flaky.asked()], [["one"], 2]);
  });

  it("asks again immediately when its socket was made again [agent 10.34]", async () => {
    const flaky = await peer("daemon.sock", 200, undefined);
    const subject = pool();
    assert.deepEqual(await subject.tokens(), []);
    // Kept under another name: its inode must not be given to the next one.
    await rename(join(home, ".ssh/daemon.sock"), join(home, ".ssh/kept"));
    await peer("daemon.sock", 200, lends("anew"));
    assert.deepEqual([await subject.tokens(), flaky.asked()], [["anew"], 1]);
  });

  it("leaves none alone because we ourselves gave up [agent 10.33]", async () => {
    const slow = await peer("daemon.sock", 200, lends("one"));
    const subject = pool();
    assert.deepEqual(await subject.tokens(AbortSignal.abort()), []);
    assert.deepEqual([await subject.tokens(), slow.asked()], [["one"], 1]);
  });

  it("takes nothing from a folder that others can write [agent 10.30]", async () => {
    const asked = await peer("daemon.sock", 200, lends("one"));
    await chmod(join(home, ".ssh"), 0o770);
    assert.deepEqual(await pool().tokens(), []);
    assert.equal(asked.asked(), 0);
  });

  it("takes nothing from a socket of another user [agent 10.30]", async (t) => {
    const asked = await peer("daemon.sock", 200, lends("one"));
    const uid = process.geteuid?.() ?? 0;
    t.mock.method(process as { geteuid(): number }, "geteuid", () => uid + 1);
    assert.deepEqual(await pool().tokens(), []);
    assert.equal(asked.asked(), 0);
  });

  it("waits for three seconds [agent 10.31]", async (t) => {
    await peer("daemon.sock", 200, lends("one"));
    const asked: number[] = [];
    t.mock.method(AbortSignal, "timeout", (ms: number) => {
      asked.push(ms);
      return AbortSignal.abort();
    });
    assert.deepEqual(await pool().tokens(), []);
    assert.deepEqual(asked, [3000]);
  });

  const pending = JSON.stringify({ code: "consent_pending", detail: "asking" });

  it("keeps a peer whose user is being asked; the daemon asks again soon, for 40 s", async () => {
    const asked = await peer("daemon.laptop.sock", 503, pending);
    const { subject, refusals, pass, tokens } = pool();
    assert.equal(subject.retryInMs(), undefined);
    assert.deepEqual(await refusals(), ["waiting for consent on laptop"]);
    assert.equal(asked.asked(), 1);
    assert.equal(subject.retryInMs(), 2000);
    pass(39_999);
    assert.deepEqual(await refusals(), ["waiting for consent on laptop"]);
    assert.equal(subject.retryInMs(), 2000);
    pass(1);
    assert.equal(subject.retryInMs(), undefined);
    Object.assign(asked, { status: 200, answer: lends("one") });
    assert.deepEqual(await tokens(), ["one"]);
    Object.assign(asked, { status: 503, answer: pending });
    await refusals();
    assert.equal(subject.retryInMs(), 2000, "another question");
  });

  it("a command waits for consent up to 40 s, and says on which workstation", async () => {
    const asked = await peer("daemon.laptop.sock", 503, pending);
    const command = pool(undefined, true);
    assert.deepEqual(await command.refusals(), ["waiting for consent on laptop"]);
    assert.deepEqual([command.time(), asked.asked(), command.waitedFor], [40_000, 21, ["laptop"]]);
    assert.deepEqual(await command.refusals(), ["waiting for consent on laptop"]);
    assert.equal(asked.asked(), 22, "it does not wait a second time");
  });

  it("a command gets the token once its user allows it, and asks other peers first", async () => {
    const laptop = await peer("daemon.laptop.sock", 503, pending);
    await peer("daemon.other.sock", 200, lends("other"));
    // The newest socket is asked first: the one that has to wait.
    const newest = new Date(Date.now() + 60_000);
    await utimes(join(home, ".ssh/daemon.laptop.sock"), newest, newest);
    const command = pool(undefined, true);
    const found: string[] = [];
    for await (const each of command.subject.borrow(new AbortController().signal)) {
      if ("token" in each) found.push(each.token.reveal());
      Object.assign(laptop, { status: 200, answer: lends("one") });
    }
    assert.deepEqual(found, ["other", "one"]);
    assert.equal(command.time(), 2000);
  });

  it("says why a peer lends nothing, without control characters", async () => {
    const detail = `No store token can be lent: \u001b[31m${"x".repeat(400)}`;
    await peer("daemon.sock", 403, JSON.stringify({ code: "token_not_lendable", detail }));
    const [reason = ""] = await pool().refusals();
    assert.match(reason, /daemon\.sock responds: No store token can be lent: \\u\{1b\}\[31mx/);
    assert.ok(reason.length < 400 + home.length);
  });
});
