import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ServerMessage } from "../channel/messages.ts";
import { FileError, StoreFault } from "../tree/file-error.ts";
import { Timers } from "../timers.ts";
import { DaemonLink } from "./daemon-link.ts";

/** A link to a daemon that does not respond by itself, with a clock that the test sets. */
class Stand {
  readonly sent: ServerMessage[] = [];
  nowMs = 0;
  readonly timers = new Timers(() => this.nowMs);
  readonly link = new DaemonLink((message) => this.sent.push(message), this.timers);

  read(signal?: AbortSignal): Promise<unknown> {
    return this.link.request({ kind: "read", path: "a" }, signal);
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.timers.runDue();
  }

  lastId(): number {
    const last = this.sent.findLast((message) => message.kind === "request");
    return last?.id ?? 0;
  }
}

const fails = (name: "ETIMEDOUT" | "EINTR") => (error: unknown) =>
  error instanceof FileError && error.errno === new FileError(name).errno;

describe("requests of the mount server to the daemon", () => {
  it("end with the response or the fault of the same number", async () => {
    const stand = new Stand();
    const first = stand.read();
    const second = stand.read();
    stand.link.receive({ kind: "fault", id: 2, code: "denied" });
    stand.link.receive({ kind: "reply", id: 1, reply: ["x"] });
    assert.deepEqual(await first, ["x"]);
    await assert.rejects(second, (error) => error instanceof StoreFault && error.code === "denied");
    // A response that nobody waits for changes nothing.
    stand.link.receive({ kind: "reply", id: 1, reply: ["late"] });
    assert.equal(stand.timers.untilNext(), undefined);
  });

  it("end after 30 s, and are cancelled", async () => {
    const stand = new Stand();
    const waiting = stand.read();
    stand.pass(29_999);
    stand.pass(1);
    await assert.rejects(waiting, fails("ETIMEDOUT"));
    assert.deepEqual(stand.sent.at(-1), { kind: "cancel", id: 1 });
  });

  it("fail immediately while the daemon does not respond, except one in 5 s", async () => {
    const stand = new Stand();
    const first = stand.read();
    stand.pass(30_000);
    await assert.rejects(first, fails("ETIMEDOUT"));
    const { length } = stand.sent;
    for (let count = 0; count < 1000; count++) await assert.rejects(stand.read(), fails("ETIMEDOUT"));
    assert.equal(stand.sent.length, length);
    stand.pass(5000);
    const tried = stand.read();
    await assert.rejects(stand.read(), fails("ETIMEDOUT"));
    stand.link.receive({ kind: "reply", id: stand.lastId(), reply: [] });
    assert.deepEqual(await tried, []);
    const next = stand.read();
    stand.link.receive({ kind: "reply", id: stand.lastId(), reply: ["again"] });
    assert.deepEqual(await next, ["again"]);
  });

  it("are not held back by one that hangs while others are answered", async () => {
    const stand = new Stand();
    const hanging = stand.read();
    stand.pass(29_000);
    const other = stand.read();
    stand.link.receive({ kind: "reply", id: stand.lastId(), reply: [] });
    assert.deepEqual(await other, []);
    stand.pass(1000);
    await assert.rejects(hanging, fails("ETIMEDOUT"));
    const next = stand.read();
    stand.link.receive({ kind: "reply", id: stand.lastId(), reply: ["next"] });
    assert.deepEqual(await next, ["next"]);
  });

  it("time out also if the daemon reports the end of its own time first", async () => {
    const stand = new Stand();
    const waiting = stand.read();
    stand.pass(29_999);
    stand.link.receive({ kind: "fault", id: 1, code: "unavailable" });
    await assert.rejects(waiting, fails("ETIMEDOUT"));
    await assert.rejects(stand.read(), fails("ETIMEDOUT"));
    stand.pass(5000);
    const cancelled = stand.read();
    stand.pass(30_000);
    await assert.rejects(cancelled, fails("ETIMEDOUT"));
    // A fault of a cancelled request does not show that the store responds.
    stand.link.receive({ kind: "fault", id: stand.lastId(), code: "aborted" });
    await assert.rejects(stand.read(), fails("ETIMEDOUT"));
  });

  it("end when their caller is interrupted", async () => {
    const stand = new Stand();
    const end = new AbortController();
    const waiting = stand.read(end.signal);
    end.abort();
    await assert.rejects(waiting, fails("EINTR"));
    await assert.rejects(stand.read(end.signal), fails("EINTR"));
  });
});
