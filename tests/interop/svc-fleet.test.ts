import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { freePort, git, repositories, run, startMinio, startVersityGateway, until } from "@devplat/testkit";
import { startBalancer, type Balancer } from "../../tools/start/instances/balancer.ts";
import type { BucketReader } from "./svc-bucket-reader.ts";
import { contentOf } from "./svc-git-stand.ts";
import { InstancesStand, addressOf, type Instance } from "./svc-instances-stand.ts";

/** Repositories of different shapes and hash functions. */
const REPOSITORIES = {
  merges: repositories.merges,
  tags: repositories.tags,
  sha256: repositories.sha256,
} as const;
/** Kinds of clones, with the object formats that they are tried with. */
const CLONES = [["--mirror"], ["--depth=1"], ["--filter=blob:none"], ["--single-branch", "--no-tags"]];

describe("instances share what one of them has cached", { timeout: 300_000 }, () => {
  for (const [title, options] of [
    ["1, 2 and 4 with one Postgres, versitygw and nginx", { bucket: startVersityGateway }],
    ["2 with an SQLite file each, and MinIO", { bucket: startMinio, database: "sqlite" }],
  ] as const) {
    const isShared = !("database" in options);
    describe(title, () => {
      let stand: InstancesStand;
      let reader: BucketReader;
      let balancer: Balancer | undefined;
      const paths = new Map<string, string>();
      const instances: Instance[] = [];
      before(async () => {
        stand = await InstancesStand.start(options);
        for (const [name, build] of Object.entries(REPOSITORIES)) {
          const added = await stand.host.addRepository("acme", name, {
            private: true,
            build: (dir) => build(dir),
          });
          paths.set(name, added.path);
        }
        reader = stand.bucketReader();
      });
      after(async () => {
        await balancer?.stop();
        await reader?.close();
        await stand?.stop();
      });

      const add = async (...names: readonly string[]): Promise<void> => {
        const added = await Promise.all(names.map(async (name) => stand.addInstance(name)));
        await Promise.all(added.map(async (each) => stand.ready(each)));
        instances.push(...added);
        for (const { svc } of isShared ? [] : added)
          for (const name of paths.keys()) await stand.list(svc, name);
        await balancer?.stop();
        if (!isShared) return;
        const ports = instances.map(({ svc }) => Number(new URL(svc.url).port));
        balancer = await startBalancer(await freePort(), ports);
      };
      /** Clones in each way, and compares with the code host. */
      const cloneAll = async (url: string, kinds = CLONES): Promise<void> => {
        for (const [name, path] of paths) {
          for (const kind of kinds) {
            const folder = await stand.tryClone(addressOf(url, name), kind);
            assert.ok(folder !== undefined, `${kind.join()} of ${name} failed`);
            if (kind[0] === "--mirror") assert.equal(await contentOf(folder), await contentOf(path));
            else {
              const [got, wanted] = [folder, path].map((each) => git(["-C", each, "rev-parse", "main"]));
              assert.equal(await got, await wanted);
              await git(["-C", folder, "fsck", "--full", "--strict"]);
            }
          }
        }
      };
      const allUploaded = async (instance: Instance): Promise<void> => {
        for (const name of paths.keys()) await stand.uploaded(instance, name);
      };

      it("one instance fetches each repository once, and the bucket is complete", async () => {
        await add("a");
        if (isShared) for (const name of paths.keys()) await stand.list(instances[0]!.svc, name);
        await cloneAll(balancer?.url ?? instances[0]!.svc.url);
        assert.equal(stand.fetches(), paths.size);
        await allUploaded(instances[0]!);
        for (const name of paths.keys()) assert.equal((await reader.check("acme", name))?.packs.length, 1);
      });

      it("each further instance serves all of it without a fetch from the code host", async () => {
        stand.host.resetCalls();
        await add("b");
        await cloneAll(instances[1]!.svc.url);
        if (isShared) {
          await add("c", "d");
          for (const { svc } of instances.slice(2)) await cloneAll(svc.url);
          await cloneAll(balancer!.url);
        }
        assert.equal(stand.fetches(), 0);
        for (const { svc } of instances.slice(1)) {
          for (const name of paths.keys()) {
            const mirror = join(svc.dataDir, "cache/acme", `${name}.git`);
            const fsck = await run("git", ["-C", mirror, "fsck", "--full", "--strict", "--no-dangling"]);
            assert.equal(fsck.code, 0, fsck.stderr);
          }
        }
      });

      it("a push is fetched once, also after another instance was killed", async () => {
        const restart = instances[0]!.kill();
        stand.host.resetCalls();
        await stand.host.push("acme", "merges", { commits: 3 });
        const [, b] = instances;
        await cloneAll(b!.svc.url, [["--mirror"]]);
        await reader.hasTip("acme", "merges", paths.get("merges")!);
        instances[0] = await restart();
        await stand.ready(instances[0]);
        for (const { svc } of instances) await cloneAll(svc.url, [["--mirror"]]);
        if (balancer !== undefined) await cloneAll(balancer.url, [["--mirror"]]);
        assert.equal(stand.fetches(), 1);
      });

      it("an instance that comes after a purge fetches nothing", async () => {
        const [a] = instances as [Instance];
        const { path } = await stand.host.addRepository("acme", "purged", { private: true });
        const id = await stand.list(a.svc, "purged");
        await stand.cloneRight(a, "purged", path);
        await stand.call(a.svc, "POST", `/api/cached-repos/${id}/purge`);
        await stand.cloneRight(a, "purged", path);
        await reader.hasTip("acme", "purged", path);
        const late = await stand.addInstance("late");
        await stand.ready(late);
        if (!isShared) await stand.list(late.svc, "purged");
        stand.host.resetCalls();
        await stand.cloneRight(late, "purged", path);
        await stand.cloneRight(late, "purged", path, ["--single-branch"]);
        assert.equal(stand.fetches(), 0);
      });

      it("an instance without a mirror takes a push for no other repository", async () => {
        const [a, b] = instances as [Instance, Instance];
        const { path } = await stand.host.addRepository("acme", "single", { private: true });
        for (const { svc } of isShared ? [a] : [a, b]) await stand.list(svc, "single");
        const clone = async (instance: Instance): Promise<void> => stand.cloneRight(instance, "single", path);
        for (let use = 0; use < 3; use++) await clone(a);
        await until(async () => (await reader.manifest("acme", "single"))?.responses.length === 1);
        await reader.hasTip("acme", "single", path);
        await clone(b);
        const filled = await reader.check("acme", "single");
        // Its only branch moves, so none of the refs that B knows is left.
        await stand.host.push("acme", "single");
        await clone(a);
        await reader.hasTip("acme", "single", path);
        stand.host.resetCalls();
        await clone(b);
        assert.equal(stand.fetches(), 0);
        assert.equal((await reader.check("acme", "single"))?.epoch, filled?.epoch, "nothing is purged");
      });
    });
  }
});
