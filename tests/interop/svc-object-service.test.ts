import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  SVC_LAUNCHER,
  git,
  gitEnvironment,
  loopSeconds,
  repositories,
  run,
  startCodeHost,
  startSvc,
  startVersityGateway,
  startS3Proxy,
  tempFolder,
  until,
  type CodeHost,
  type S3Proxy,
  type S3Server,
  type Svc,
  type SvcOptions,
} from "@devplat/testkit";
import { ENCRYPTION_KEY, HOST_TOKEN, bucketEnvironment } from "./svc-instances-stand.ts";

/** Share of the time of loops. */
const SHARE = 0.02;

describe("the service with a bucket", { timeout: 480_000 }, () => {
  let host: CodeHost;
  let server: S3Server;
  let proxy: S3Proxy;
  let folder: Awaited<ReturnType<typeof tempFolder>>;
  let count = 0;

  before(async () => {
    [host, server, folder] = await Promise.all([
      startCodeHost(),
      startVersityGateway(),
      tempFolder("svc-object"),
    ]);
    proxy = await startS3Proxy(server.endpoint);
    host.addUser("alice", HOST_TOKEN);
  });
  after(async () => {
    await proxy?.stop();
    await Promise.all([host?.stop(), server?.stop(), folder?.remove()]);
  });

  const start = async (options: SvcOptions = {}): Promise<Svc> =>
    startSvc({
      codeHost: host,
      ...options,
      env: {
        SVC_ENCRYPTION_KEY: ENCRYPTION_KEY,
        SVC_DEV_HOST_TOKEN: HOST_TOKEN,
        ...bucketEnvironment(server, proxy.endpoint),
        ...options.env,
      },
    });
  const repository = async (...instances: readonly Svc[]): Promise<string> => {
    const name = `r${++count}`;
    await host.addRepository("org", name, { build: repositories.merges });
    for (const svc of instances) await svc.addCachedRepository("org", name);
    return name;
  };
  const clone = async (svc: Svc, name: string): Promise<string> => {
    const to = `${folder.path}/${++count}`;
    const args = ["clone", "-q", "--bare", `${svc.url}/org/${name}`, to];
    const { code, stderr } = await run("git", args, { env: gitEnvironment() });
    assert.equal(code, 0, stderr);
    await git(["-C", to, "fsck", "--full", "--strict"]);
    return await git(["-C", to, "rev-parse", "HEAD"]);
  };
  interface Listed {
    readonly name: string;
    readonly stats: {
      readonly size_bytes: number;
      readonly packs: number;
      readonly bucket: {
        readonly size_bytes: number | null;
        readonly responses: number;
        readonly waiting: number;
      } | null;
    };
  }
  const bucketOf = async (svc: Svc, name: string): Promise<NonNullable<Listed["stats"]["bucket"]>> => {
    const { bucket } = await statsOf(svc, name);
    assert.ok(bucket !== null);
    return bucket;
  };
  const statsOf = async (svc: Svc, name: string): Promise<Listed["stats"]> => {
    const token = await svc.signIn();
    const response = await fetch(`${svc.url}/api/cached-repos`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const found = ((await response.json()) as Listed[]).find((each) => each.name === name);
    assert.ok(found !== undefined);
    return found.stats;
  };
  const usable = async (svc: Svc): Promise<void> => {
    await until(async () => (await (await fetch(`${svc.url}/readyz`)).text()) === "ready\n");
  };
  const cachedBy = async (svc: Svc, name: string): Promise<string> => {
    const head = await clone(svc, name);
    for (let at = 0; at < 2; at++) await clone(svc, name);
    await until(async () => {
      const { responses, waiting } = await bucketOf(svc, name);
      return responses > 0 && waiting === 0;
    });
    return head;
  };

  it("an instance with another database serves what the first one has cached", async () => {
    const [a, b] = [await start(), await start()];
    try {
      await Promise.all([usable(a), usable(b)]);
      const name = await repository(a, b);
      const head = await cachedBy(a, name);
      assert.ok(((await bucketOf(a, name)).size_bytes ?? 0) > 0);
      host.resetCalls();
      assert.equal(await clone(b, name), head);
      assert.deepEqual(
        host.calls.filter(({ command }) => command === "fetch"),
        [],
      );
      const metrics = await (await fetch(b.metricsUrl)).text();
      assert.match(metrics, /^svc_cache_bytes_total\{source="object"\} [1-9]/m);
      assert.match(metrics, /^svc_cache_object_store_usable 1$/m);
      const token = await a.signIn();
      const page = await fetch(`${a.url}/admin/repositories`, {
        headers: { cookie: `svc_session=${token}` },
      });
      assert.match(await page.text(), /bucket: /);
      for (const svc of [a, b])
        assert.ok(!svc.log().includes(server.secretAccessKey), "no secret in the log");
    } finally {
      await Promise.all([a.stop(), b.stop()]);
    }
  });

  it("sizes are right after a restart and before the first use", async () => {
    const dataDir = `${folder.path}/restarted`;
    let a = await start({ dataDir });
    let packs = 0;
    let [used, unused] = ["", ""];
    try {
      await usable(a);
      [used, unused] = [await repository(a), await repository(a)];
      await cachedBy(a, used);
      packs = await until(async () => {
        const found = (await statsOf(a, used)).packs;
        return found > 0 && found;
      });
    } finally {
      await a.stop();
    }
    a = await start({ dataDir });
    try {
      await usable(a);
      const stats = await until(async () => {
        const found = await statsOf(a, used);
        return found.packs > 0 && found;
      });
      assert.equal(stats.packs, packs);
      assert.ok(stats.size_bytes > 0);
      assert.ok((stats.bucket?.size_bytes ?? 0) > 0);
      assert.equal((await statsOf(a, unused)).bucket?.size_bytes, 0);
    } finally {
      await a.stop();
    }
  });

  it("purge says when the data is gone from the disk and the bucket", async () => {
    const a = await start();
    try {
      await usable(a);
      const name = await repository(a);
      await cachedBy(a, name);
      const cli = async (...args: string[]) =>
        run(SVC_LAUNCHER, args, {
          env: { PATH: process.env["PATH"], SVC_URL: a.url, SVC_TOKEN: await a.signIn() },
        });
      const purged = await cli("repo", "purge", `org/${name}`);
      assert.equal(purged.stdout, `purged org/${name}\n`, purged.stderr);
      const { size_bytes: bytes, packs, bucket } = await statsOf(a, name);
      assert.deepEqual([bytes, packs, bucket?.size_bytes, bucket?.waiting], [0, 0, 0, 0]);
    } finally {
      await a.stop();
    }
  });

  it("what waits for its upload when the service stops is uploaded before it ends", async () => {
    const a = await start();
    const name = await repository(a);
    await usable(a);
    proxy.inject(["put"], { delayMs: 300 });
    for (let at = 0; at < 3; at++) await clone(a, name);
    await a.stop();
    proxy.heal();
    const b = await start();
    try {
      await b.addCachedRepository("org", name);
      await usable(b);
      host.resetCalls();
      await clone(b, name);
      assert.deepEqual(
        host.calls.filter(({ command }) => command === "fetch"),
        [],
      );
    } finally {
      await b.stop();
    }
  });

  it("starts without the bucket and says so; --require-object-store refuses", async () => {
    await proxy.goAway();
    try {
      const a = await start();
      try {
        const name = await repository(a);
        for (let at = 0; at < 3; at++) await clone(a, name);
        await until(async () => /^bucket: /m.test(await (await fetch(`${a.url}/readyz`)).text()));
      } finally {
        await a.stop();
      }
      await assert.rejects(start({ args: ["--require-object-store"] }), /bucket cannot be used/);
    } finally {
      await proxy.comeBack();
    }
  });

  it("kill -9 during uploads: no clone is wrong, and the uploads come later", async () => {
    const dataDir = `${folder.path}/killed`;
    const end = performance.now() + loopSeconds(SHARE) * 1000;
    let kills = 0;
    let names: readonly string[] = [];
    do {
      const a = await start({ dataDir });
      const name = await repository(a);
      names = [...names, name];
      await usable(a);
      proxy.inject(["put", "part", "create", "complete"], { delayMs: 30 });
      for (let at = 0; at < 3; at++) await clone(a, name);
      await sleep(Math.random() * 200);
      a.kill();
      proxy.heal();
      kills++;
    } while (kills < 3 || performance.now() < end);
    const a = await start({ dataDir });
    const b = await start();
    try {
      await Promise.all([usable(a), usable(b)]);
      for (const name of names) {
        const head = await cachedBy(a, name);
        await b.addCachedRepository("org", name);
        assert.equal(await clone(b, name), head);
        assert.equal((await bucketOf(b, name)).responses, 1);
      }
    } finally {
      await Promise.all([a.stop(), b.stop()]);
    }
  });
});
