import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { LINK_LIFETIME_MS, SESSION_LIFETIME_MS, Sessions } from "./sessions.ts";

class SetClock implements Clock {
  time = 1_000_000;
  now(): number {
    return this.time;
  }
  monotonic(): number {
    return this.time;
  }
  async sleep(ms: number): Promise<void> {
    this.time += ms;
  }
}

function start(): { clock: SetClock; ended: string[]; sessions: Sessions } {
  const clock = new SetClock();
  const ended: string[] = [];
  return { clock, ended, sessions: new Sessions((session) => ended.push(session), clock) };
}

function open(sessions: Sessions): { code: string; session: string } {
  const { code } = sessions.issueLink();
  const redemption = sessions.redeem(code);
  assert.ok(redemption.outcome === "opened");
  return { code, session: redemption.session };
}

describe("Sessions", () => {
  it("opens one session with a link", () => {
    const { sessions } = start();
    assert.ok(sessions.isOpen(open(sessions).session));
  });

  it("refuses a link after 30 seconds [agent 32.14]", () => {
    const { clock, sessions } = start();
    const { code } = sessions.issueLink();
    clock.time += LINK_LIFETIME_MS;
    assert.deepEqual(sessions.redeem(code), { outcome: "invalid" });
  });

  it("ends the session when its link is redeemed a second time", () => {
    const { ended, sessions } = start();
    const { code, session } = open(sessions);
    assert.deepEqual(sessions.redeem(code), { outcome: "used" });
    assert.equal(sessions.isOpen(session), false);
    assert.deepEqual(ended, [session]);
  });

  it("notices the second use after the 30 seconds too", () => {
    const { clock, sessions } = start();
    const { code, session } = open(sessions);
    clock.time += LINK_LIFETIME_MS * 2;
    assert.equal(sessions.redeem(code).outcome, "used");
    assert.equal(sessions.isOpen(session), false);
  });

  it("ends a session after its lifetime, and reports it to the sweep", () => {
    const { clock, ended, sessions } = start();
    const { session } = open(sessions);
    clock.time += SESSION_LIFETIME_MS;
    sessions.endExpired();
    assert.deepEqual(ended, [session]);
  });

  it("ends a session after its lifetime when it is looked up", () => {
    const { clock, ended, sessions } = start();
    const { session } = open(sessions);
    clock.time += SESSION_LIFETIME_MS - 1;
    assert.equal(sessions.isOpen(session), true);
    clock.time += 1;
    assert.equal(sessions.isOpen(session), false);
    assert.deepEqual(ended, [session]);
  });

  it("ends all sessions", () => {
    const { ended, sessions } = start();
    const all = [open(sessions).session, open(sessions).session];
    sessions.endAll();
    assert.deepEqual(ended.toSorted(), all.toSorted());
    assert.deepEqual(
      all.filter((session) => sessions.isOpen(session)),
      [],
    );
  });

  it("keeps the session that was opened last, even if an older one is in use", () => {
    const { ended, sessions } = start();
    const first = open(sessions).session;
    for (let count = 0; count < 31; count++) open(sessions);
    assert.equal(sessions.isOpen(first), true);
    open(sessions);
    assert.deepEqual(ended, [first]);
  });

  it("refuses what it never issued", () => {
    const { sessions } = start();
    assert.equal(sessions.redeem("").outcome, "invalid");
    assert.equal(sessions.isOpen(undefined), false);
    assert.equal(sessions.isOpen(""), false);
  });

  it("keeps a bounded number of sessions and ends the oldest", () => {
    const { ended, sessions } = start();
    const first = open(sessions).session;
    for (let count = 0; count < 32; count++) open(sessions);
    assert.deepEqual(ended, [first]);
  });
});
