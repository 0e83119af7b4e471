import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { run, until } from "@devplat/testkit";
import { InstancesStand, type Instance } from "./svc-instances-stand.ts";

/** Milliseconds within which a change of one instance is in effect at the others (spec/svc-scale.md section 4). */
const EFFECT_MS = 2000;

describe("stored data of several instances on one Postgres", { timeout: 600_000 }, () => {
  let stand: InstancesStand;
  let a: Instance;
  let b: Instance;
  let id: string;

  before(async () => {
    stand = await InstancesStand.start();
    a = await stand.addInstance("a");
    b = await stand.addInstance("b");
    id = await stand.list(a.svc);
  });
  after(async () => stand?.stop());

  /** Clones through A until its cache answers. */
  const filled = async (): Promise<void> => {
    await until(async () => (await stand.clone(a.svc)) === "hit");
  };
  const purge = async (): Promise<void> => stand.call(b.svc, "POST", `/api/cached-repos/${id}/purge`);
  const storedFiles = async ({ svc }: Instance): Promise<readonly string[]> => {
    const found = await readdir(join(svc.dataDir, "cache"), { recursive: true });
    return found.filter(
      (path) => /widgets.*(?:\.pack|[0-9a-f]{64})$/.test(path) && !path.includes("removed"),
    );
  };
  const administer = async (sql: string): Promise<void> => {
    const { code, stderr } = await run("psql", ["-X", "-q", "-c", sql, stand.postgres.dsn]);
    assert.equal(code, 0, stderr);
  };

  for (const [title, action] of [
    ["purge", async () => purge()],
    [
      "DELETE and a new entry",
      async () => {
        await stand.call(b.svc, "DELETE", `/api/cached-repos/${id}`);
        id = await stand.list(b.svc);
      },
    ],
    [
      "disable and enable",
      async () => {
        await stand.call(b.svc, "PATCH", `/api/cached-repos/${id}`, { enabled: false });
        await stand.call(b.svc, "PATCH", `/api/cached-repos/${id}`, { enabled: true });
      },
    ],
  ] as const) {
    it(`an instance that was stopped during a ${title} serves nothing old`, async () => {
      await filled();
      const restart = a.kill();
      await action();
      a = await restart();
      assert.deepEqual(await storedFiles(a), []);
      assert.equal(await stand.clone(a.svc), "miss");
    });
  }

  it("a purge is in effect at another instance within 2 seconds, also without NOTIFY", async () => {
    for (const blocked of [false, true]) {
      await filled();
      const blocking = new AbortController();
      const blocker = blocked ? blockNotify(blocking.signal) : Promise.resolve();
      await purge();
      const purgedAt = performance.now();
      await until(async () => (await storedFiles(a)).length === 0);
      assert.ok(performance.now() - purgedAt < EFFECT_MS, `after ${performance.now() - purgedAt} ms`);
      assert.equal(await stand.clone(a.svc), "miss");
      blocking.abort();
      await blocker;
    }
  });

  it("an instance that was paused during a purge serves nothing old when it continues", async () => {
    await filled();
    process.kill(a.svc.pid, "SIGSTOP");
    await purge();
    await sleep(EFFECT_MS);
    process.kill(a.svc.pid, "SIGCONT");
    assert.equal(await stand.clone(a.svc), "miss");
  });

  it("cut off from the database it serves on, and after the first contact nothing old", async () => {
    await filled();
    const minted = await stand.call<{ token: string }>(b.svc, "POST", "/api/tokens", {
      repository: "acme/widgets",
      scopes: "contents:read",
      duration: "1h",
    });
    assert.equal(await stand.clone(a.svc, minted.token), "hit");
    a.relay.cut();
    await until(async () => (await fetch(`${a.svc.url}/readyz?require=database`)).status === 503);
    await purge();
    await sleep(EFFECT_MS);
    assert.equal(await stand.clone(a.svc), "hit", "with a credential that only the code host checks");
    assert.equal(await stand.clone(a.svc, minted.token), undefined, "its token cannot be looked up");
    a.relay.restore();
    assert.equal(await until(async () => stand.clone(a.svc, minted.token)), "miss");
  });

  it("while the list cannot be read, a disabled repository is not served after a pause", async () => {
    await filled();
    process.kill(a.svc.pid, "SIGSTOP");
    await stand.call(b.svc, "PATCH", `/api/cached-repos/${id}`, { enabled: false });
    await sleep(EFFECT_MS);
    process.kill(a.svc.pid, "SIGCONT");
    assert.equal(await stand.clone(a.svc), "uncached");
    await stand.call(b.svc, "PATCH", `/api/cached-repos/${id}`, { enabled: true });
  });

  it("with Postgres stopped and back, changes reach the others again", async () => {
    const database = "test_1";
    await administer(`ALTER DATABASE ${database} WITH ALLOW_CONNECTIONS false`);
    await administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`);
    await until(async () => (await fetch(`${a.svc.url}/readyz?require=database`)).status === 503);
    await sleep(EFFECT_MS);
    await administer(`ALTER DATABASE ${database} WITH ALLOW_CONNECTIONS true`);
    for (const { svc } of [a, b]) {
      await until(async () => (await fetch(`${svc.url}/readyz?require=database`)).status === 200);
    }
    await until(async () => (await stand.send(b.svc, "GET", "/api/cached-repos")).status === 200);
    const { id: added } = await stand.call<{ id: string }>(b.svc, "POST", "/api/cached-repos", {
      owner: "acme",
      name: "gadgets",
    });
    const addedAt = performance.now();
    await until(async () => (await stand.send(a.svc, "GET", `/api/cached-repos/${added}`)).status === 200);
    assert.ok(performance.now() - addedAt < EFFECT_MS);
    await stand.call(b.svc, "DELETE", `/api/cached-repos/${added}`);
    const deletedAt = performance.now();
    await until(async () => (await stand.send(a.svc, "GET", `/api/cached-repos/${added}`)).status === 404);
    assert.ok(performance.now() - deletedAt < EFFECT_MS);
  });

  /** Ends the connections that listen, as often as they are opened. */
  async function blockNotify(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await administer(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'LISTEN%' AND pid <> pg_backend_pid()",
      );
      await sleep(50);
    }
  }
});
