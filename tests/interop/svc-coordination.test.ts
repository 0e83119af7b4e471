import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Secret, silentLogger, systemClock } from "@devplat/base";
import { run, SVC_LAUNCHER, until } from "@devplat/testkit";
import { Leases } from "../../apps/svc/src/coordination/leases.ts";
import { openStore } from "../../apps/svc/src/storage/open-store.ts";
import type { Store } from "../../apps/svc/src/storage/store.ts";
import { InstancesStand, shiftedClock, type Instance } from "./svc-instances-stand.ts";

const TTL_MS = 1000;
const HOUR_MS = 3_600_000;
const EFFECT_MS = 2000;

describe("instances with clocks an hour apart on one Postgres", { timeout: 300_000 }, () => {
  let stand: InstancesStand;
  let ahead: Instance;
  let behind: Instance;
  before(async () => {
    stand = await InstancesStand.start();
    ahead = await stand.addInstance("ahead", { env: shiftedClock(HOUR_MS) });
    behind = await stand.addInstance("behind", { env: shiftedClock(0) });
  });
  after(async () => stand?.stop());

  it("the clocks are shifted", async () => {
    const [one = 0, other = 0] = await Promise.all(
      [ahead, behind].map(async ({ svc }) => {
        const fields = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
        const minted = await stand.call<{ expires_at: string }>(svc, "POST", "/api/tokens", fields);
        return Date.parse(minted.expires_at);
      }),
    );
    assert.ok(Math.abs(one - other - HOUR_MS) < 60_000, String(one - other));
  });

  it("each lists both, ready, with ages of seconds, also on the command line", async () => {
    for (const { svc } of [ahead, behind]) {
      const listed = await until(async () => {
        const found = await stand.call<{ ready: boolean; is_this: boolean }[]>(svc, "GET", "/api/instances");
        // Its first entry, from before it listens, is not ready.
        return found.length === 2 && found.every(({ ready }) => ready) && found;
      });
      assert.equal(listed.filter(({ is_this: isThis }) => isThis).length, 1);
    }
    const printed = await run(SVC_LAUNCHER, ["instance", "list", "--json"], {
      env: { PATH: process.env["PATH"], SVC_URL: behind.svc.url, SVC_TOKEN: stand.admin },
    });
    assert.equal(printed.code, 0, printed.stderr);
    const rows = JSON.parse(printed.stdout) as Record<string, unknown>[];
    assert.equal(rows.length, 2);
    for (const row of rows) {
      assert.equal(row["ready"], true);
      assert.ok(Number(row["report_age_seconds"]) < 60);
      assert.ok(Number(row["uptime_seconds"]) < 300);
    }
  });

  it("a purge by either is in effect at the other within 2 seconds", async () => {
    const id = await stand.list(ahead.svc);
    for (const [here, there] of [
      [ahead, behind],
      [behind, ahead],
    ] as const) {
      await until(async () => (await stand.clone(there.svc)) === "hit");
      await stand.call(here.svc, "POST", `/api/cached-repos/${id}/purge`);
      await sleep(EFFECT_MS);
      assert.equal(await stand.clone(there.svc), "miss");
    }
  });

  it("an instance that stops leaves the list", async () => {
    assert.equal(await ahead.svc.stop().catch(() => 0), 0);
    await until(async () => {
      const found = await stand.call<unknown[]>(behind.svc, "GET", "/api/instances");
      return found.length === 1;
    });
  });
});

describe("a lease on Postgres", { timeout: 120_000 }, () => {
  let stand: InstancesStand;
  let store: Store;
  let dsn: string;
  let child: ChildProcess | undefined;
  let output = "";
  before(async () => {
    stand = await InstancesStand.start();
    dsn = await stand.postgres.createDatabase();
    store = await openStore(
      {
        driver: "postgres",
        dsn: new Secret(dsn),
        dataDir: "unused",
        maxConnections: 3,
        vault: {
          namespace: undefined,
          mount: "",
          prefix: "",
          auth: { method: "token", token: undefined },
          caFile: undefined,
        },
      },
      async () => ({ current: new Secret("0f".repeat(32)), previous: undefined }),
      true,
    );
  });
  after(async () => {
    child?.kill("SIGKILL");
    await store?.close();
    await stand?.stop();
  });

  it("of a paused holder goes to another one, and the holder writes nothing more", async () => {
    child = spawn(process.execPath, [join(import.meta.dirname, "svc-lease-child.ts"), dsn, String(TTL_MS)]);
    child.stdout?.on("data", (chunk) => (output += String(chunk)));
    await until(() => /write\n/.test(output));
    const fence = Number(/fence (\d+)/.exec(output)?.[1]);
    const leases = new Leases({
      store: store.leases,
      instance: "other",
      clock: { ...systemClock, now: () => systemClock.now() - HOUR_MS },
      logger: silentLogger,
    });
    await sleep(TTL_MS);
    assert.equal(await leases.hold("work", TTL_MS), undefined, "it is renewed");
    child.kill("SIGSTOP");
    const taken = await until(async () => leases.hold("work", TTL_MS));
    assert.ok(taken.fence > fence);
    const printed = output.length;
    child.kill("SIGCONT");
    await until(() => output.includes("lost"));
    assert.doesNotMatch(output.slice(printed), /write/);
    assert.equal(taken.isHeld, true);
    await taken.release();
  });
});
