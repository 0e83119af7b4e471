import assert from "node:assert/strict";
import { randomUUIDv7 } from "node:crypto";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createLogger, type Clock } from "@devplat/base";
import { Housekeeping } from "./housekeeping.ts";
import { auditRecord, oneTimeRecord, sessionRecord, tokenRecord } from "../storage/contract/records.ts";
import { memoryStore } from "../storage/memory.test-kit.ts";
import type { Store } from "../storage/store.ts";

const NOW = 1_700_000_000_000;
const DAY_MS = 86_400_000;

describe("Housekeeping", () => {
  let store: Store;
  let lines: string[];
  const clock: Clock = { now: () => NOW, monotonic: () => 0, sleep: async () => undefined };
  const housekeeping = (auditDays: number): Housekeeping =>
    new Housekeeping({
      store,
      clock,
      logger: createLogger({ format: "json", destination: { write: (line) => void lines.push(line) } }),
      auditDays,
    });

  beforeEach(async () => {
    store = await memoryStore();
    lines = [];
  });
  afterEach(async () => store.close().catch(() => undefined));

  it("removes what is over and keeps the rest; ended tokens stay for 30 days", async () => {
    const over = await sessionRecord(store, { expiresAt: NOW - 1 });
    const live = await sessionRecord(store, { expiresAt: NOW + 1 });
    await store.sessions.insert(over);
    await store.sessions.insert(live);
    const old = await tokenRecord(store, { expiresAt: NOW - 31 * DAY_MS });
    const recent = await tokenRecord(store, { expiresAt: NOW - 29 * DAY_MS });
    await store.tokens.insert(old);
    await store.tokens.insert(recent);
    await store.oneTime.put(oneTimeRecord({ expiresAt: NOW - 1 }), 1);
    await housekeeping(90).clean();
    assert.deepEqual(
      (await store.sessions.list()).map(({ id }) => id),
      [live.id],
    );
    assert.equal(await store.tokens.get(old.id), undefined);
    assert.notEqual(await store.tokens.get(recent.id), undefined);
    assert.equal(await store.oneTime.deleteExpired(NOW), 0);
    assert.match(lines.join(""), /removed what is over/);
  });

  it("audit.retention_days: older records go, and with 0 none does", async () => {
    const records = [89, 91].map((days) => auditRecord({ at: NOW - days * DAY_MS }));
    await store.audit.append(records);
    await housekeeping(0).clean();
    assert.equal((await store.audit.query({ limit: 10 })).records.length, 2);
    await housekeeping(90).clean();
    assert.deepEqual((await store.audit.query({ limit: 10 })).records, [records[0]]);
  });

  it("leaves it to the instance that does it already", async () => {
    await store.leases.acquire("housekeeping", randomUUIDv7(), 60_000);
    await store.audit.append([auditRecord({ at: 1 })]);
    await housekeeping(90).clean();
    assert.equal((await store.audit.query({ limit: 10 })).records.length, 1);
  });

  it("a database that is away is logged, and nothing is thrown", async () => {
    await store.close();
    await housekeeping(90).clean();
    assert.match(lines.join(""), /could not be removed/);
  });
});
