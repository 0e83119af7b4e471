import assert from "node:assert/strict";
import { it } from "node:test";
import type { Store } from "../store.ts";
import { oneTimeRecord } from "./records.ts";

/** Data that instances share for a short time: one-time entries. */
export function sharedCases(store: () => Store): void {
  it("a one-time entry is taken once, also by concurrent callers", async () => {
    const { oneTime } = store();
    const record = oneTimeRecord();
    assert.equal(await oneTime.put(record, 1), true);
    assert.deepEqual(await oneTime.get(record.kind, record.key, 1), record);
    const taken = await Promise.all([1, 2, 3, 4].map(async () => oneTime.take(record.kind, record.key, 1)));
    assert.deepEqual(
      taken.filter((each) => each !== undefined),
      [record],
    );
    assert.equal(await oneTime.take(record.kind, record.key, 1), undefined);
    assert.equal(await oneTime.get(record.kind, record.key, 1), undefined);
  });

  it("a one-time entry is put once under its kind and key (replay marks)", async () => {
    const { oneTime } = store();
    const record = oneTimeRecord();
    const won = await Promise.all([1, 2, 3, 4].map(async () => oneTime.put(record, 1)));
    assert.equal(won.filter(Boolean).length, 1);
    assert.equal(await oneTime.put({ ...record, value: "other" }, 1), false);
    assert.equal((await oneTime.get(record.kind, record.key, 1))?.value, record.value);
    assert.equal(await oneTime.put({ ...record, kind: "oauth_state" }, 1), true);
  });

  it("a one-time entry that has expired is gone, and its key is free", async () => {
    const { oneTime } = store();
    const record = oneTimeRecord({ expiresAt: 10 });
    await oneTime.put(record, 1);
    assert.equal(await oneTime.get(record.kind, record.key, 10), undefined);
    assert.equal(await oneTime.take(record.kind, record.key, 10), undefined);
    assert.equal(await oneTime.replace(record.kind, record.key, record.value, "x", 10), false);
    assert.equal(await oneTime.put({ ...record, value: "new", expiresAt: 20 }, 10), true);
    assert.equal((await oneTime.get(record.kind, record.key, 11))?.value, "new");
  });

  it("of two replacements of one value, the second gets false", async () => {
    const { oneTime } = store();
    const { kind, key, value } = oneTimeRecord();
    await oneTime.put(oneTimeRecord(), 1);
    assert.equal(await oneTime.replace(kind, key, "something else", "x", 1), false);
    const won = await Promise.all(
      ["approved", "denied"].map(async (to) => oneTime.replace(kind, key, value, to, 1)),
    );
    assert.equal(won.filter(Boolean).length, 1);
    const present = (await oneTime.get(kind, key, 1))?.value ?? "";
    assert.equal(won[["approved", "denied"].indexOf(present)], true);
    assert.equal(await oneTime.replace(kind, key, present, "used", 1), true);
    assert.equal((await oneTime.get(kind, key, 1))?.expiresAt, oneTimeRecord().expiresAt);
    assert.equal(await oneTime.replace("none", key, value, "x", 1), false);
  });

  it("a count that several raise by replacement loses nothing", async () => {
    const { oneTime } = store();
    const { kind, key } = oneTimeRecord();
    await oneTime.put(oneTimeRecord({ value: "0" }), 1);
    const raise = async (): Promise<void> => {
      for (;;) {
        const value = (await oneTime.get(kind, key, 1))?.value ?? "";
        if (await oneTime.replace(kind, key, value, String(Number(value) + 1), 1)) return;
      }
    };
    await Promise.all([1, 2, 3, 4].map(async () => raise()));
    assert.equal((await oneTime.get(kind, key, 1))?.value, "4");
  });

  it("expired one-time entries are cleared away, the others stay", async () => {
    const { oneTime } = store();
    await oneTime.put(oneTimeRecord({ key: "a", expiresAt: 10 }), 1);
    await oneTime.put(oneTimeRecord({ key: "b", expiresAt: 20 }), 1);
    assert.equal(await oneTime.deleteExpired(10), 1);
    assert.notEqual(await oneTime.get("device_code", "b", 1), undefined);
  });
}
