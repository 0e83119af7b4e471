import assert from "node:assert/strict";
import { randomUUIDv7 } from "node:crypto";
import { it } from "node:test";
import { Secret } from "@devplat/base";
import type { Store } from "../store.ts";
import { credential, comparable, sessionRecord } from "./records.ts";

export function accountCases(store: () => Store): void {
  it("a login is one user in any case of letters, also for concurrent callers", async () => {
    const { users } = store();
    const [one, two] = await Promise.all([
      users.ensure("Alice", randomUUIDv7(), 1),
      users.ensure("alice", randomUUIDv7(), 1),
    ]);
    assert.equal(one.id, two.id);
    assert.deepEqual(await users.get(one.id), one);
    assert.equal((await users.ensure("ALICE", randomUUIDv7(), 7)).lastLoginAt, 7);
    assert.equal(await users.get(randomUUIDv7()), undefined);
  });

  it("a code-host user whose login was renamed keeps the record", async () => {
    const { users } = store();
    const before = await users.ensureHost("17", "alice", randomUUIDv7(), 1);
    assert.equal(before.hostUserId, "17");
    const after = await users.ensureHost("17", "alice-2", randomUUIDv7(), 2);
    assert.deepEqual(after, { ...before, login: "alice-2", lastLoginAt: 2 });
    assert.equal((await users.ensure("alice", randomUUIDv7(), 3)).hostUserId, undefined);
  });

  it("a login that another host user took gets a new record; the old one is renamed", async () => {
    const { users } = store();
    const before = await users.ensureHost("17", "alice", randomUUIDv7(), 1);
    const after = await users.ensureHost("18", "Alice", randomUUIDv7(), 2);
    assert.notEqual(after.id, before.id);
    assert.equal(after.login, "Alice");
    const former = await users.get(before.id);
    assert.equal(former?.login, `alice~${before.id.slice(-8)}`);
    assert.equal(former?.hostUserId, "17");
    const back = await users.ensureHost("17", "bob", randomUUIDv7(), 3);
    assert.equal(back.id, before.id);
  });

  it("a code-host user does not inherit a login that was made without a code host", async () => {
    const { users } = store();
    const local = await users.ensure("alice", randomUUIDv7(), 1);
    const host = await users.ensureHost("17", "alice", randomUUIDv7(), 2);
    assert.notEqual(host.id, local.id);
    assert.equal((await users.ensure("alice", randomUUIDv7(), 3)).id, host.id);
  });

  it("first logins of one code-host user that race make one record", async () => {
    const { users } = store();
    const made = await Promise.all(
      [1, 2, 3, 4].map(async () => users.ensureHost("17", "alice", randomUUIDv7(), 1)),
    );
    assert.equal(new Set(made.map(({ id }) => id)).size, 1);
    assert.deepEqual(await users.list(), [made[0]]);
  });

  it("users are listed by login without regard to case", async () => {
    const { users } = store();
    for (const login of ["carol", "Bob", "alice"]) await users.ensure(login, randomUUIDv7(), 1);
    assert.deepEqual(
      (await users.list()).map(({ login }) => login),
      ["alice", "Bob", "carol"],
    );
  });

  it("a credential is replaced, removed, and undefined where none is stored", async () => {
    const { users } = store();
    const user = await users.ensure("alice", randomUUIDv7(), 1);
    assert.equal(await users.credential(user.id), undefined);
    await users.putCredential(user.id, credential("first"), 1);
    const second = credential("second ✓", { refreshToken: new Secret("refresh"), expiresAt: 5000 });
    await users.putCredential(user.id, second, 2);
    assert.deepEqual(comparable(await users.credential(user.id)), comparable(second));
    assert.equal(await users.credential(randomUUIDv7()), undefined);
    await users.ensure("alice", randomUUIDv7(), 3);
    assert.notEqual(await users.credential(user.id), undefined);
    assert.equal(await users.removeCredential(user.id), true);
    assert.equal(await users.removeCredential(user.id), false);
    assert.equal(await users.credential(user.id), undefined);
  });

  it("a session comes back as it was written, by hash and by id", async () => {
    const { sessions } = store();
    const session = await sessionRecord(store(), {
      kind: "administration",
      role: "admin",
      name: "backup",
      createdIp: "10.0.0.1",
      userAgent: "curl",
      lastSeenAt: 4,
      mintedBy: randomUUIDv7(),
    });
    await sessions.insert(session);
    assert.deepEqual(await sessions.findByHash(session.tokenHash), session);
    assert.deepEqual(await sessions.get(session.id), session);
    assert.equal(await sessions.findByHash("none"), undefined);
    assert.equal(await sessions.get(randomUUIDv7()), undefined);
  });

  it("a session is there until it is deleted or cleared away", async () => {
    const { sessions } = store();
    const session = await sessionRecord(store(), { expiresAt: 100 });
    const other = await sessionRecord(store(), { expiresAt: 300 });
    await sessions.insert(session);
    await sessions.insert(other);
    assert.equal(await sessions.deleteExpired(200), 1);
    assert.equal(await sessions.findByHash(session.tokenHash), undefined);
    assert.equal(await sessions.delete(other.id), true);
    assert.equal(await sessions.delete(other.id), false);
    assert.equal(await sessions.findByHash(other.tokenHash), undefined);
    assert.deepEqual(await sessions.list(), []);
  });

  it("sessions are listed newest first, by user, by kind, or all", async () => {
    const { sessions } = store();
    const one = await sessionRecord(store(), { createdAt: 1 });
    const two = await sessionRecord(store(), { createdAt: 2, kind: "administration", name: "n" });
    const foreign = await sessionRecord(store(), { createdAt: 3 }, "bob");
    for (const each of [one, two, foreign]) await sessions.insert(each);
    const ids = async (filter: Parameters<typeof sessions.list>[0]): Promise<string[]> =>
      (await sessions.list(filter)).map(({ id }) => id);
    assert.deepEqual(await ids(undefined), [foreign.id, two.id, one.id]);
    assert.deepEqual(await ids({ userId: one.userId }), [two.id, one.id]);
    assert.deepEqual(await ids({ kind: "session" }), [foreign.id, one.id]);
    assert.deepEqual(await ids({ kind: "administration", userId: foreign.userId }), []);
  });

  it("a session notes when it was seen; one that is gone notes nothing", async () => {
    const { sessions } = store();
    const session = await sessionRecord(store());
    await sessions.insert(session);
    await sessions.recordSeen(session.id, 77);
    assert.equal((await sessions.get(session.id))?.lastSeenAt, 77);
    const gone = randomUUIDv7();
    await sessions.recordSeen(gone, 78);
    assert.equal(await sessions.get(gone), undefined);
  });

  it("a user's sessions are deleted together, of one kind or all, and nobody else's", async () => {
    const { sessions } = store();
    const kinds = ["session", "session", "administration"] as const;
    const own = await Promise.all(kinds.map(async (kind) => sessionRecord(store(), { kind })));
    const foreign = await sessionRecord(store(), {}, "bob");
    for (const each of [...own, foreign]) await sessions.insert(each);
    const userId = own[0]?.userId ?? "";
    assert.equal(await sessions.deleteOfUser(userId, "session"), 2);
    assert.equal(await sessions.deleteOfUser(userId), 1);
    assert.deepEqual(
      (await sessions.list()).map(({ id }) => id),
      [foreign.id],
    );
  });
}
