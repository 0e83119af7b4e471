import assert from "node:assert/strict";
import { it } from "node:test";
import type { AuditRecord } from "../../../audit/audit-store.ts";
import { auditDocuments } from "./places.ts";

const HOUR_MS = 60 * 60 * 1000;
/** Vault refuses larger documents. */
const MAX_DOCUMENT_BYTES = 500_000;

const record = (id: number, at: number): AuditRecord => ({
  id: `record-${id}`,
  at,
  action: "token.created",
  outcome: "allowed",
  actor: { kind: "system" },
  details: { note: "x".repeat(10_000) },
});

it("audit records are in documents of one hour each that Vault takes", () => {
  const records = Array.from({ length: 100 }, (_, at) => record(at, at < 30 ? 0 : HOUR_MS));
  const documents = auditDocuments(records);
  const found = documents.map(({ path, value }) => {
    const { records: some } = value as { records: readonly AuditRecord[] };
    assert.equal(path.split("/").at(-1), some[0]?.id);
    assert.equal(new Set(some.map(({ at }) => at)).size, 1);
    assert.ok(Buffer.byteLength(JSON.stringify(JSON.stringify(value))) < MAX_DOCUMENT_BYTES);
    return some;
  });
  assert.deepEqual(found.flat(), records);
  assert.deepEqual(auditDocuments(records), documents, "a repetition has the same documents");
  assert.ok(documents.length < 20, String(documents.length));
});

it("an audit record that is larger than the limit has a document of its own", () => {
  const large = { ...record(1, 0), details: { note: "x".repeat(200_000) } };
  const documents = auditDocuments([record(0, 0), large, record(2, 0)]);
  assert.equal(documents.length, 3);
});
