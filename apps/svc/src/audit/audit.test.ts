import type { AuditRecord, AuditStore } from "./audit-store.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLogger, systemClock, type Logger } from "@devplat/base";
import { SvcError } from "../errors.ts";
import { memoryStore } from "../storage/memory.test-kit.ts";
import { createToken } from "../credentials/token-format.ts";
import type { AuditEvent } from "./audit-event.ts";
import { AuditRecorder } from "./audit-recorder.ts";
import { auditText } from "./audit-text.ts";
import { DenialLimits } from "./denial-limits.ts";

const EVENT: AuditEvent = { action: "git.fetch", outcome: "allowed", actor: { kind: "anonymous" } };

/** A store that can be away, and one whose response gets lost. */
class PlayedStore implements AuditStore {
  readonly records: AuditRecord[] = [];
  state: "up" | "away" | "answer lost" = "up";

  async append(records: readonly AuditRecord[]): Promise<void> {
    if (this.state !== "away") {
      const known = new Set(this.records.map(({ id }) => id));
      this.records.push(...records.filter(({ id }) => !known.has(id)));
    }
    if (this.state !== "up") throw new SvcError("database_unavailable", "away", { remedy: "retry" });
  }
  async query(): Promise<never> {
    throw new Error("not asked here");
  }
  async deleteBefore(): Promise<number> {
    return 0;
  }
}

function recorder(store: AuditStore): {
  readonly trail: AuditRecorder;
  readonly lines: string[];
  readonly warnings: string[];
  dropped: number;
} {
  const [lines, warnings]: [string[], string[]] = [[], []];
  const logger = (into: string[]): Logger =>
    createLogger({ format: "json", destination: { write: (line) => void into.push(line) } });
  const made = {
    lines,
    warnings,
    dropped: 0,
    trail: new AuditRecorder({
      store,
      auditLog: logger(lines),
      logger: logger(warnings),
      clock: { ...systemClock, now: () => 1_700_000_000_000 },
      onRecorded: () => undefined,
      onDropped: (count) => void (made.dropped += count),
    }),
  };
  return made;
}

describe("AuditRecorder", () => {
  it("gives the log line immediately and the row with the next write", async () => {
    const store = await memoryStore();
    const { trail, lines } = recorder(store.audit);
    trail.record({
      action: "token.created",
      outcome: "allowed",
      actor: { kind: "user", login: "alice", credentialId: "s1" },
      target: "t1",
      remoteAddress: "10.0.0.1",
      requestId: "r1",
      details: { scopes: "contents:read" },
    });
    const line = JSON.parse(lines.join("")) as Record<string, unknown>;
    assert.equal(line["action"], "token.created");
    assert.equal(line["login"], "alice");
    assert.equal(line["remote_ip"], "10.0.0.1");
    assert.deepEqual((await store.audit.query({ limit: 5 })).records, []);
    await trail.flush();
    const { records } = await store.audit.query({ limit: 5 });
    assert.equal(records.length, 1);
    assert.equal(records[0]?.id, line["audit_id"]);
    assert.equal(records[0]?.at, 1_700_000_000_000);
    assert.deepEqual(records[0]?.details, { scopes: "contents:read" });
    await store.close();
  });

  it("keeps events while the database is away, and writes each once and in order later", async () => {
    const store = new PlayedStore();
    const { trail, warnings } = recorder(store);
    store.state = "away";
    for (const target of ["a", "b"]) trail.record({ ...EVENT, target });
    await trail.flush();
    await trail.flush();
    assert.equal(warnings.length, 1, "it complains once, not at each try");
    store.state = "answer lost";
    await trail.flush();
    store.state = "up";
    trail.record({ ...EVENT, target: "c" });
    await trail.flush();
    assert.deepEqual(
      store.records.map(({ target }) => target),
      ["a", "b", "c"],
    );
  });

  it("drops and counts events beyond its memory, and still logs them", async () => {
    const store = new PlayedStore();
    const made = recorder(store);
    for (let count = 0; count < 20_003; count++) made.trail.record(EVENT);
    assert.equal(made.dropped, 3);
    assert.equal(made.lines.length, 20_003);
    await made.trail.flush();
    assert.equal(store.records.length, 20_000);
  });

  it("writes the rest when it is stopped", async () => {
    const store = new PlayedStore();
    const { trail } = recorder(store);
    const abort = new AbortController();
    const running = trail.run(abort.signal);
    trail.record(EVENT);
    abort.abort();
    await running;
    assert.equal(store.records.length, 1);
  });

  it("keeps the order of events of one millisecond", async () => {
    const store = await memoryStore();
    const { trail } = recorder(store.audit);
    const targets = Array.from({ length: 200 }, (_, index) => String(index));
    for (const target of targets) trail.record({ ...EVENT, target });
    await trail.flush();
    const { records } = await store.audit.query({ limit: 1000 });
    assert.deepEqual(
      records.map(({ target }) => target),
      targets.toReversed(),
    );
    await store.close();
  });

  it("never throws when the store fails", async () => {
    const store = new PlayedStore();
    store.append = async () => Promise.reject(new Error("broken"));
    const { trail } = recorder(store);
    assert.doesNotThrow(() => trail.record(EVENT));
    await assert.doesNotReject(trail.flush());
  });
});

describe("DenialLimits", () => {
  let now = 0;
  const denialLimits = (): DenialLimits => new DenialLimits({ ...systemClock, monotonic: () => now });
  const denial = (remoteAddress: string, login?: string): AuditEvent => ({
    action: "access.denied",
    outcome: "denied",
    actor: { kind: "anonymous", login },
    remoteAddress,
  });
  const verdicts = (limits: DenialLimits, count: number, event: AuditEvent): string[] =>
    Array.from({ length: count }, () => limits.classify(event));

  it("60 of one address are recorded in a minute, and the last one says so", () => {
    const limits = denialLimits();
    const classified = verdicts(limits, 62, denial("10.0.0.1"));
    assert.deepEqual(classified.slice(58), ["record", "record_as_last", "leave_out", "leave_out"]);
    assert.equal(limits.classify(denial("10.0.0.2")), "record");
    now += 60_000;
    assert.equal(limits.classify(denial("10.0.0.1")), "record");
  });

  it("an IPv6 network of 64 bits counts as one caller", () => {
    const limits = denialLimits();
    verdicts(limits, 60, denial("2001:db8::1"));
    assert.equal(limits.classify(denial("2001:db8::2")), "leave_out");
    assert.equal(limits.classify(denial("2001:db8:1::2")), "record");
  });

  it("1000 of external callers are recorded in a minute, from any number of addresses", () => {
    const limits = denialLimits();
    const classified = Array.from({ length: 1100 }, (_, index) =>
      limits.classify(denial(`10.0.${index >> 8}.${index & 255}`)),
    );
    assert.equal(classified.filter((verdict) => verdict !== "leave_out").length, 1000);
    assert.equal(classified[999], "record_as_last");
  });

  it("failures of external callers count: malformed fetches, writes over a limit", () => {
    const limits = denialLimits();
    const failed: AuditEvent = { ...denial("10.0.0.1"), action: "git.fetch", outcome: "failed" };
    assert.deepEqual(verdicts(limits, 61, failed).slice(59), ["record_as_last", "leave_out"]);
    assert.equal(limits.classify(denial("10.0.0.1")), "leave_out");
  });

  it("600 of one known credential are recorded in a minute after 1000 of unknown ones", () => {
    const limits = denialLimits();
    const refused = (credentialId: string): AuditEvent => ({
      ...denial("10.0.0.1", "alice"),
      actor: { kind: "proxy_token", login: "alice", credentialId },
    });
    verdicts(limits, 2000, denial("10.0.0.1"));
    assert.deepEqual(verdicts(limits, 601, refused("a")).slice(598), [
      "record",
      "record_as_last",
      "leave_out",
    ]);
    assert.equal(limits.classify(refused("b")), "record");
  });

  it("always records allowed actions and actions of the service itself", () => {
    const limits = denialLimits();
    verdicts(limits, 2000, denial("10.0.0.1"));
    const allowed: AuditEvent = { ...denial("10.0.0.1"), outcome: "allowed" };
    const own: AuditEvent = { ...denial(""), outcome: "failed", actor: { kind: "system" } };
    for (const event of [allowed, own]) {
      assert.deepEqual(new Set(verdicts(limits, 2000, event)), new Set(["record"]));
    }
  });
});

describe("auditText", () => {
  it("has no control characters, broken characters or our tokens, and is bounded", () => {
    assert.equal(auditText(undefined), undefined);
    assert.equal(auditText("acme/Widgets"), "acme/Widgets");
    assert.equal(auditText("a\u0000b\u001b[31m\r\nc"), "a\uFFFDb\uFFFD[31m\uFFFD\uFFFDc");
    assert.equal(auditText("\ud800x"), "\uFFFDx");
    assert.equal(auditText("x".repeat(1000))?.length, 300);
    const token = createToken("proxy").reveal();
    assert.equal(auditText(`/x/${token}/y`), "/x/svcx_***/y");
    assert.equal(auditText(`acme/ghp_${"a".repeat(36)}.git`), "acme/ghp_***.git");
    assert.equal(auditText(`github_pat_${"b".repeat(30)}`), "github_***");
  });
});
