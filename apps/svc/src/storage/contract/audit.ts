import type { AuditQuery, AuditRecord } from "../../audit/audit-store.ts";
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Store } from "../store.ts";
import { comparable, auditRecord } from "./records.ts";

export function auditCases(store: () => Store): void {
  it("an audit record comes back as it was written", async () => {
    const { audit } = store();
    const record = auditRecord({
      action: "git.push",
      outcome: "denied",
      actor: { kind: "proxy_token", login: "Alice", credentialId: "token-1" },
      target: "acme/Widgets",
      remoteAddress: "2001:db8::1",
      requestId: "r1",
      details: { status: 403, service: "receive-pack", forced: false },
    });
    await audit.append([record]);
    await audit.append([]);
    assert.deepEqual(await audit.query({ limit: 10 }), { records: [record], next: undefined });
  });

  it("a batch that is sent again is kept once", async () => {
    const { audit } = store();
    const records = [auditRecord({ at: 1 }), auditRecord({ at: 2 })];
    await audit.append(records);
    await audit.append([...records, auditRecord({ at: 3 })]);
    assert.equal((await audit.query({ limit: 10 })).records.length, 3);
  });

  it("audit records come newest first, page by page, each once", async () => {
    const { audit } = store();
    const records = [1, 2, 2, 2, 3, 4, 5].map((at) => auditRecord({ at }));
    await audit.append(records.slice(0, 4));
    await audit.append(records.slice(4));
    const seen: AuditRecord[] = [];
    let cursor: string | undefined;
    do {
      const page = await audit.query({ limit: 2, cursor });
      assert.ok(page.records.length <= 2);
      seen.push(...page.records);
      cursor = page.next;
    } while (cursor !== undefined);
    assert.deepEqual(
      seen.map(({ at }) => at),
      [5, 4, 3, 2, 2, 2, 1],
    );
    assert.equal(new Set(seen.map(({ id }) => id)).size, records.length);
  });

  it("a record that is written between two pages moves nothing on the later ones", async () => {
    const { audit } = store();
    const records = [1, 2, 3].map((at) => auditRecord({ at }));
    await audit.append(records);
    const { next } = await audit.query({ limit: 2 });
    await audit.append([auditRecord({ at: 9 })]);
    assert.deepEqual(
      comparable((await audit.query({ limit: 2, cursor: next })).records),
      comparable([records[0]]),
    );
  });

  it("a text that is not a cursor gives an empty page", async () => {
    const { audit } = store();
    await audit.append([auditRecord()]);
    for (const cursor of ["", "x", "1.x", "' OR 1=1 --"]) {
      assert.deepEqual(await audit.query({ limit: 5, cursor }), { records: [], next: undefined });
    }
  });

  it("audit records are filtered by action, actor, target, outcome and time together", async () => {
    const { audit } = store();
    const fetched = auditRecord({ at: 10, action: "git.fetch", target: "acme/Widgets" });
    const pushed = auditRecord({ at: 20, action: "git.push", target: "acme/Widgets", outcome: "denied" });
    const bobs = auditRecord({ at: 30, actor: { kind: "user", login: "Bob", credentialId: undefined } });
    const nobody = auditRecord({
      at: 40,
      action: "login.failed",
      actor: { kind: "anonymous", login: undefined, credentialId: undefined },
    });
    await audit.append([fetched, pushed, bobs, nobody]);
    const cases: [Omit<AuditQuery, "limit">, AuditRecord[]][] = [
      [{ actions: ["git.fetch", "git.push"] }, [pushed, fetched]],
      [{ actions: [] }, [nobody, bobs, pushed, fetched]],
      [{ actor: "bob" }, [bobs]],
      [{ actor: "ALICE" }, [pushed, fetched]],
      [{ actor: "%" }, []],
      [{ target: "ACME/widgets" }, [pushed, fetched]],
      [{ outcome: "denied" }, [pushed]],
      [{ from: 20 }, [nobody, bobs, pushed]],
      [{ to: 20 }, [fetched]],
      [{ from: 20, to: 40 }, [bobs, pushed]],
      [{ target: "acme/widgets", outcome: "allowed", actions: ["git.fetch"] }, [fetched]],
      [{ target: "acme/widgets", actor: "bob" }, []],
    ];
    for (const [query, expected] of cases) {
      const { records } = await audit.query({ ...query, limit: 10 });
      assert.deepEqual(comparable(records), comparable(expected), JSON.stringify(query));
    }
  });

  it("a page holds as many matching records as asked for, however rare they are", async () => {
    const { audit } = store();
    const records = Array.from({ length: 60 }, (_, at) =>
      auditRecord({ at, action: at % 20 === 0 ? "git.push" : "git.fetch" }),
    );
    await audit.append(records);
    const page = await audit.query({ actions: ["git.push"], limit: 2 });
    assert.deepEqual(
      page.records.map(({ at }) => at),
      [40, 20],
    );
    const last = await audit.query({ actions: ["git.push"], limit: 2, cursor: page.next });
    assert.deepEqual(
      last.records.map(({ at }) => at),
      [0],
    );
    assert.equal(last.next, undefined);
  });

  it("old audit records are deleted, later ones stay", async () => {
    const { audit } = store();
    const kept = auditRecord({ at: 1_700_000_000_000 });
    await audit.append([auditRecord({ at: 1_600_000_000_000 }), kept]);
    assert.equal(await audit.deleteBefore(1_700_000_000_000), 1);
    assert.deepEqual(comparable((await audit.query({ limit: 5 })).records), comparable([kept]));
  });
}
