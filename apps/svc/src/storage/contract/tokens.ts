import assert from "node:assert/strict";
import { randomUUIDv7 } from "node:crypto";
import { it } from "node:test";
import type { Store, TokenRecord } from "../store.ts";
import { comparable, sessionRecord, tokenRecord } from "./records.ts";

export function tokenCases(store: () => Store): void {
  it("a token comes back as it was written, by hash and by id", async () => {
    const { tokens } = store();
    const record = await tokenRecord(store(), {
      type: "agent",
      description: "ci",
      sessionId: "run-1",
      appId: randomUUIDv7(),
      installation: "acme",
      ipAllow: ["10.0.0.0/8"],
      requestsPerMinute: 60,
      mintedBy: randomUUIDv7(),
    });
    await tokens.insert(record);
    assert.deepEqual(comparable(await tokens.findByHash(record.tokenHash)), comparable(record));
    assert.deepEqual(comparable(await tokens.get(record.id)), comparable(record));
    assert.equal(await tokens.findByHash("none"), undefined);
    assert.equal(await tokens.get(randomUUIDv7()), undefined);
  });

  it("tokens are listed newest first, by user or all, without revoked ones", async () => {
    const { tokens } = store();
    const one = await tokenRecord(store(), { createdAt: 1 });
    const two = await tokenRecord(store(), { createdAt: 2 });
    const foreign = await tokenRecord(store(), { createdAt: 3 }, "bob");
    for (const each of [one, two, foreign]) await tokens.insert(each);
    const ids = async (userId: string | undefined): Promise<string[]> =>
      (await tokens.list({ userId, limit: 10 })).records.map(({ id }) => id);
    assert.deepEqual(await ids(one.userId), [two.id, one.id]);
    assert.deepEqual(await ids(undefined), [foreign.id, two.id, one.id]);
    assert.equal(await tokens.revoke(two.id, 50), true);
    assert.equal(await tokens.revoke(two.id, 60), false);
    assert.equal(await tokens.revoke(randomUUIDv7(), 60), false);
    assert.equal((await tokens.get(two.id))?.revokedAt, 50);
    assert.deepEqual(await ids(one.userId), [one.id]);
  });

  it("tokens are listed and counted by session; tokens that ended do not count", async () => {
    const { tokens } = store();
    const [mintedBy, other, none] = [randomUUIDv7(), randomUUIDv7(), randomUUIDv7()];
    const now = 1_700_000_000_500;
    const change = { mintedBy, expiresAt: now + 1 };
    const first = await tokenRecord(store(), { ...change, createdAt: 1 });
    const endless = await tokenRecord(store(), { ...change, createdAt: 2, expiresAt: undefined });
    const expired = await tokenRecord(store(), { ...change, createdAt: 3, expiresAt: now });
    const revoked = await tokenRecord(store(), { ...change, createdAt: 4 });
    const foreign = await tokenRecord(store(), { ...change, mintedBy: other });
    const old = await tokenRecord(store());
    for (const each of [first, endless, expired, revoked, foreign, old]) await tokens.insert(each);
    await tokens.revoke(revoked.id, now);
    const listed = await tokens.list({ mintedBy, limit: 10 });
    assert.deepEqual(
      listed.records.map(({ id }) => id),
      [expired.id, endless.id, first.id],
    );
    const page = await tokens.list({ mintedBy, limit: 2 });
    assert.equal((await tokens.list({ mintedBy, limit: 2, cursor: page.next })).records[0]?.id, first.id);
    const somebodyElse = await sessionRecord(store(), {}, "bob");
    assert.deepEqual((await tokens.list({ mintedBy, userId: somebodyElse.userId, limit: 10 })).records, []);
    assert.deepEqual(
      await tokens.countMintedBy([mintedBy, other, none], now),
      new Map([
        [mintedBy, 2],
        [other, 1],
      ]),
    );
    assert.deepEqual(await tokens.countMintedBy([], now), new Map());
  });

  it("tokens come page by page, each once; an unknown cursor gives an empty page", async () => {
    const { tokens } = store();
    const times = [1, 2, 2, 2, 3];
    const made = await Promise.all(times.map(async (createdAt) => tokenRecord(store(), { createdAt })));
    for (const each of made) await tokens.insert(each);
    const seen: TokenRecord[] = [];
    let cursor: string | undefined;
    do {
      const page = await tokens.list({ limit: 2, cursor });
      assert.ok(page.records.length <= 2);
      seen.push(...page.records);
      cursor = page.next;
    } while (cursor !== undefined);
    assert.deepEqual(
      seen.map(({ createdAt }) => createdAt),
      times.toReversed(),
    );
    assert.equal(new Set(seen.map(({ id }) => id)).size, times.length);
    assert.deepEqual(await tokens.list({ limit: 2, cursor: "' OR 1=1 --" }), {
      records: [],
      next: undefined,
    });
  });

  it("of revocations that race, exactly one gets true", async () => {
    const { tokens } = store();
    const record = await tokenRecord(store());
    await tokens.insert(record);
    const won = await Promise.all([1, 2, 3].map(async (now) => tokens.revoke(record.id, now)));
    assert.equal(won.filter(Boolean).length, 1);
  });

  it("uses are added up, and those of unknown tokens are dropped", async () => {
    const { tokens } = store();
    const record = await tokenRecord(store());
    await tokens.insert(record);
    const use = { id: record.id, uses: 2, lastUsedAt: 5, lastIp: "10.0.0.1" };
    await tokens.recordUses([use, { ...use, id: randomUUIDv7() }]);
    await tokens.recordUses([{ ...use, uses: 3, lastUsedAt: 6 }]);
    await tokens.recordUses([]);
    const used = { ...record, useCount: 5, lastUsedAt: 6, lastIp: "10.0.0.1" };
    assert.deepEqual(comparable(await tokens.get(record.id)), comparable(used));
  });

  it("uses that two instances report concurrently are all counted", async () => {
    const { tokens } = store();
    const record = await tokenRecord(store());
    await tokens.insert(record);
    const use = { id: record.id, uses: 1, lastUsedAt: 5, lastIp: "10.0.0.1" };
    await Promise.all([1, 2, 3, 4].map(async () => tokens.recordUses([use])));
    assert.equal((await tokens.get(record.id))?.useCount, 4);
  });

  it("a use that is reported after the revocation does not undo it", async () => {
    const { tokens } = store();
    const record = await tokenRecord(store());
    await tokens.insert(record);
    await Promise.all([
      tokens.revoke(record.id, 9),
      tokens.recordUses([{ id: record.id, uses: 1, lastUsedAt: 5, lastIp: "10.0.0.1" }]),
    ]);
    const stored = await tokens.get(record.id);
    assert.equal(stored?.revokedAt, 9);
    assert.equal(stored?.useCount, 1);
  });

  it("ended tokens are cleared away, those without expiry stay", async () => {
    const { tokens } = store();
    const expired = await tokenRecord(store(), { expiresAt: 10 });
    const endless = await tokenRecord(store(), { expiresAt: undefined });
    const revoked = await tokenRecord(store(), { expiresAt: undefined });
    for (const each of [expired, endless, revoked]) await tokens.insert(each);
    await tokens.revoke(revoked.id, 15);
    assert.equal(await tokens.deleteEnded(20), 2);
    assert.notEqual(await tokens.get(endless.id), undefined);
    assert.equal(await tokens.get(expired.id), undefined);
    assert.equal(await tokens.findByHash(expired.tokenHash), undefined);
  });
}
