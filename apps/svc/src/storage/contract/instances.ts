import assert from "node:assert/strict";
import { it } from "node:test";
import type { InstanceRecord } from "../coordination-store.ts";
import type { Store } from "../store.ts";

/** Milliseconds that no test takes. */
const LONG_MS = 600_000;
/** Milliseconds of silence that the test waits for. */
const SILENT_MS = 50;

export function instanceCases(store: () => Store): void {
  const record = (id: string, change: Partial<InstanceRecord> = {}): InstanceRecord => ({
    id,
    hostName: "host-b",
    address: "host-b:8080",
    manifestKeyId: undefined,
    settingsDigests: undefined,
    version: "1.2.3",
    ready: true,
    ...change,
  });

  it("an instance that reported is listed with its ages and its last report", async () => {
    const { instances } = store();
    const last = { ready: false, version: "1.3.0", manifestKeyId: "0123456789abcdef", settingsDigests: "{}" };
    await instances.report(record("i1"));
    await instances.report(record("i2", { hostName: "host-a" }));
    await instances.report(record("i0", { address: "host-b:9090" }));
    await instances.report(record("i1", last));
    const listed = await instances.list();
    assert.deepEqual(
      listed.map(({ id, hostName, address, version, manifestKeyId, settingsDigests, ready }) => ({
        id,
        hostName,
        address,
        manifestKeyId,
        settingsDigests,
        version,
        ready,
      })),
      [record("i2", { hostName: "host-a" }), record("i1", last), record("i0", { address: "host-b:9090" })],
    );
    for (const { uptimeMs, reportAgeMs, figures, figuresAgeMs } of listed) {
      assert.ok(0 <= reportAgeMs && reportAgeMs <= uptimeMs && uptimeMs < LONG_MS);
      assert.equal(figures, undefined);
      assert.equal(figuresAgeMs, undefined);
    }
  });

  it("an instance that registered before its first report is listed once", async () => {
    const { instances } = store();
    await instances.register(record("i1", { address: undefined, ready: false }));
    await instances.report(record("i1"));
    const listed = await instances.list();
    assert.deepEqual(
      listed.map(({ id, address, ready }) => [id, address, ready]),
      [["i1", "host-b:8080", true]],
    );
  });

  it("figures are kept over reports, and those of an unknown instance are dropped", async () => {
    const { instances } = store();
    await instances.report(record("i1"));
    await instances.putFigures("i1", '{"hits":1}');
    await instances.putFigures("i1", '{"hits":2}');
    await instances.putFigures("unknown", "{}");
    await instances.report(record("i1"));
    const [listed, ...others] = await instances.list();
    assert.deepEqual(others, []);
    assert.equal(listed?.figures, '{"hits":2}');
    assert.ok(listed.figuresAgeMs !== undefined && listed.figuresAgeMs >= 0);
  });

  it("an instance that is silent for too long is removed with its figures", async () => {
    const { instances } = store();
    await instances.report(record("i1"));
    await instances.putFigures("i1", "{}");
    assert.equal(await instances.removeSilent(LONG_MS), 0);
    while ((await instances.list()).some(({ reportAgeMs }) => reportAgeMs <= SILENT_MS));
    await instances.report(record("i2"));
    assert.equal(await instances.removeSilent(SILENT_MS), 1);
    assert.deepEqual(
      (await instances.list()).map(({ id }) => id),
      ["i2"],
    );
    await instances.report(record("i1"));
    assert.equal((await instances.list())[0]?.figures, undefined);
  });

  it("an instance that stops removes itself", async () => {
    const { instances } = store();
    await instances.report(record("i1"));
    await instances.remove("i1");
    await instances.remove("i1");
    assert.deepEqual(await instances.list(), []);
  });
}
