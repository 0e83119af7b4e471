import assert from "node:assert/strict";
import { beforeEach, afterEach, describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { memoryStore } from "../../storage/memory.test-kit.ts";
import type { Store, UserRecord } from "../../storage/store.ts";
import { createToken } from "../../credentials/token-format.ts";
import { NO_CLIENT, shortUserAgent } from "../client.ts";
import { Sessions } from "./sessions.ts";

const START = Date.UTC(2026, 0, 1);
const DAY = 86_400_000;

describe("sessions", () => {
  let store: Store;
  let now: number;
  let alice: UserRecord;
  const clock: Clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };
  const sessions = (admins: readonly string[] = [], recordedRoles = false): Sessions =>
    new Sessions(store, clock, { admins, recordedRoles });

  beforeEach(async () => {
    now = START;
    store = await memoryStore();
    alice = await store.users.ensure("alice", "u1", now);
  });
  afterEach(async () => store.close());

  it("a session is good for 30 days, and ends when it is ended", async () => {
    const { token, record } = await sessions().start(alice, "user", NO_CLIENT);
    assert.equal((await sessions().authenticate(token.reveal()))?.login, "alice");
    assert.equal(await sessions().authenticate(createToken("session").reveal()), undefined);
    now += 30 * DAY - 1;
    assert.notEqual(await sessions().authenticate(token.reveal()), undefined);
    now += 1;
    assert.equal(await sessions().authenticate(token.reveal()), undefined);
    now = START;
    await sessions().end(record.id);
    assert.equal(await sessions().authenticate(token.reveal()), undefined);
  });

  it("listed admins are admins in any live session, until they are off the list", async () => {
    const { token } = await sessions().start(alice, "user", NO_CLIENT);
    assert.equal((await sessions(["ALICE"]).authenticate(token.reveal()))?.role, "admin");
    assert.equal((await sessions().authenticate(token.reveal()))?.role, "user");
  });

  it("the role that a test login chose counts in development mode only", async () => {
    const { token } = await sessions([], true).start(alice, "admin", NO_CLIENT);
    assert.equal((await sessions([], true).authenticate(token.reveal()))?.role, "admin");
    assert.equal((await sessions().authenticate(token.reveal()))?.role, "user");
  });

  it("a user lists and ends own sessions, an admin everybody's", async () => {
    const bob = await store.users.ensure("bob", "u2", now);
    const client = { address: "192.0.2.7", userAgent: "curl/8", requestId: undefined };
    const mine = await sessions().start(alice, "user", client);
    const other = await sessions().start(bob, "user", NO_CLIENT);
    const listed = await sessions().list(mine.identity, false);
    assert.deepEqual(
      listed.map(({ record, identity }) => [identity.login, record.createdIp, record.userAgent]),
      [["alice", "192.0.2.7", "curl/8"]],
    );
    await assert.rejects(sessions().revoke(mine.identity, other.record.id), { code: "not_found" });
    await assert.rejects(sessions().revoke(mine.identity, "none"), { code: "not_found" });
    const admin = { ...mine.identity, role: "admin" as const };
    assert.equal((await sessions().list(admin, true)).length, 2);
    await sessions().revoke(admin, other.record.id);
    assert.equal(await sessions().authenticate(other.token.reveal()), undefined);
    now += 31 * DAY;
    assert.deepEqual(await sessions().list(admin, true), []);
  });

  it("an administration token is neither listed nor ended as a session", async () => {
    const { record, identity } = await sessions().start(alice, "user", NO_CLIENT);
    const token = { ...record, id: "t1", tokenHash: "x", kind: "administration" as const };
    await store.sessions.insert(token);
    assert.equal((await sessions().list(identity, false)).length, 1);
    await assert.rejects(sessions().revoke(identity, "t1"), { code: "not_found" });
  });

  it("when it was last seen is noted once a minute", async () => {
    const { token, record } = await sessions().start(alice, "user", NO_CLIENT);
    const seen = async (): Promise<number | undefined> => {
      await sessions().authenticate(token.reveal());
      return (await store.sessions.get(record.id))?.lastSeenAt;
    };
    assert.equal(await seen(), START);
    now += 59_999;
    assert.equal(await seen(), START);
    now += 1;
    assert.equal(await seen(), START + 60_000);
  });
});

describe("a user agent as it is kept", () => {
  it("is short, printable ASCII", () => {
    assert.equal(shortUserAgent(undefined), undefined);
    assert.equal(shortUserAgent(" \u0000\n"), undefined);
    assert.equal(shortUserAgent(`git/2\u001b[31m${"x".repeat(200)}`)?.length, 120);
    assert.equal(shortUserAgent("git/2\u001b[31m"), "git/2[31m");
  });
});
