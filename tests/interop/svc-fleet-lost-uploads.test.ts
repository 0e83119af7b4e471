import assert from "node:assert/strict";
import { mkdir, readFile, readdir, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startVersityGateway, until } from "@devplat/testkit";
import type { BucketReader } from "./svc-bucket-reader.ts";
import { InstancesStand, type Instance } from "./svc-instances-stand.ts";

/** Clones through one instance, so that the response is uploaded too. */
const USES = 3;
const WRITES = ["put", "create", "part", "complete"] as const;

/** Files that are lost before the instance starts again. */
type Loss = "jobs" | "half of each job" | "data" | "jobs and data";

describe("uploads whose job or data is lost before they ran", { timeout: 480_000 }, () => {
  let stand: InstancesStand;
  let reader: BucketReader;
  let a: Instance;
  let b: Instance;
  let count = 0;
  before(async () => {
    stand = await InstancesStand.start({ bucket: startVersityGateway });
    reader = stand.bucketReader();
    a = await stand.addInstance("a");
    b = await stand.addInstance("b");
    for (const instance of [a, b]) await stand.ready(instance);
  });
  after(async () => {
    await reader?.close();
    await stand?.stop();
  });

  const cacheOf = ({ svc }: Instance): string => join(svc.dataDir, "cache");
  const uploadsOf = (instance: Instance): string => join(cacheOf(instance), "_uploads");
  const waiting = async (name: string): Promise<number> => {
    const listed = await stand.call<{ name: string; stats: { bucket: { waiting: number } | null } }[]>(
      a.svc,
      "GET",
      "/api/cached-repos",
    );
    return listed.find((each) => each.name === name)?.stats.bucket?.waiting ?? 0;
  };
  const repository = async (): Promise<{ name: string; path: string }> => {
    const name = `lost${++count}`;
    const { path } = await stand.host.addRepository("acme", name, { private: true });
    await stand.list(a.svc, name);
    return { name, path };
  };
  /** A has the repository, and its mirror and its response wait for their upload. */
  const waitingAtA = async ({ name, path }: { name: string; path: string }): Promise<void> => {
    for (let use = 0; use < USES; use++) await stand.cloneRight(a, name, path);
    await until(async () => (await waiting(name)) === 2);
  };
  /** Paths of the jobs of a repository on the disk. */
  const jobFiles = async (name: string): Promise<string[]> => {
    const paths = (await readdir(uploadsOf(a))).map((file) => join(uploadsOf(a), file));
    const texts = await Promise.all(paths.map(async (path) => readFile(path, "utf8").catch(() => "")));
    return paths.filter((_, at) => texts[at]!.includes(`"${name}"`));
  };
  /** After the next use the bucket gets all of it, and the other instance needs nothing from the code host. */
  const assertUploadedLater = async ({ name, path }: { name: string; path: string }): Promise<void> => {
    await reader.check("acme", name);
    for (let use = 0; use < USES; use++) await stand.cloneRight(a, name, path);
    await reader.hasTip("acme", name, path);
    await until(async () => (await reader.manifest("acme", name))?.responses.length === 1);
    await reader.check("acme", name);
    stand.host.resetCalls();
    await stand.cloneRight(b, name, path);
    assert.equal(stand.fetches(), 0, b.svc.log().slice(-2000));
  };

  it("after a kill, lost or damaged jobs and lost data are uploaded at the next use", async () => {
    const losses: readonly Loss[] = ["jobs", "half of each job", "data", "jobs and data"];
    const lost: { readonly loss: Loss; readonly name: string; readonly path: string }[] = [];
    for (const loss of losses) lost.push({ loss, ...(await repository()) });
    a.s3.inject(WRITES, { refuse: true });
    for (const each of lost) {
      await waitingAtA(each);
      await until(async () => (await jobFiles(each.name)).length === 2);
    }
    const restart = a.kill();
    for (const { loss, name } of lost) {
      assert.equal(await reader.manifest("acme", name), undefined, "nothing is there that could be named");
      for (const file of await jobFiles(name)) {
        if (loss.startsWith("jobs")) await rm(file);
        if (loss.startsWith("half")) await truncate(file, Math.floor((await stat(file)).size / 2));
      }
      if (!loss.endsWith("data")) continue;
      await rm(join(cacheOf(a), "acme", `${name}.git`), { recursive: true });
      await rm(join(cacheOf(a), "_responses", "acme", name), { recursive: true });
    }
    a = await restart();
    await stand.ready(a);
    for (const { name } of lost) {
      await until(async () => (await waiting(name)) === 0);
      // A job without data is complete. It must not leave a manifest that names something.
      await reader.check("acme", name);
    }
    for (const each of lost) await assertUploadedLater(each);
  });

  it("a kill before the jobs are on the disk: the data is uploaded after its next use", async () => {
    const lost = await repository();
    await rm(uploadsOf(a), { recursive: true });
    // The list of jobs cannot be written, so the kill comes before that for sure.
    await writeFile(uploadsOf(a), "");
    a.s3.inject(WRITES, { refuse: true });
    await waitingAtA(lost);
    const restart = a.kill();
    await rm(uploadsOf(a));
    await mkdir(uploadsOf(a));
    a = await restart();
    await stand.ready(a);
    assert.equal(await waiting(lost.name), 0, "nobody knows of the uploads");
    await assertUploadedLater(lost);
  });

  it("a folder of jobs that cannot be written harms no clone and no upload", async () => {
    const here = await repository();
    await rm(uploadsOf(a), { recursive: true });
    await writeFile(uploadsOf(a), "");
    await assertUploadedLater(here);
    await until(async () => (await waiting(here.name)) === 0);
    await rm(uploadsOf(a));
    await mkdir(uploadsOf(a));
  });
});
