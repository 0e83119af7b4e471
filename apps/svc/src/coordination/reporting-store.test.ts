import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { memoryStore } from "../storage/memory.test-kit.ts";
import { reportingStore } from "./reporting-store.ts";

describe("reportingStore", () => {
  it("reports each response of the database, and no failure", async () => {
    let responses = 0;
    const store = reportingStore(await memoryStore(), () => void responses++);
    await store.users.ensure("alice", "id-1", 1);
    assert.equal(responses, 1);
    assert.equal((await store.users.get("id-1"))?.login, "alice");
    assert.equal(responses, 2);
    await store.ping();
    assert.equal(responses, 3);
    await store.close();
    await assert.rejects(store.users.get("id-1"), { code: "database_unavailable" });
    assert.equal(responses, 3);
  });
});
