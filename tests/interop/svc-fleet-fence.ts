import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { git, gitEnvironment, startVersityGateway, until } from "@devplat/testkit";
import type { BucketReader, ReadManifest } from "./svc-bucket-reader.ts";
import { InstancesStand, addressOf, type Instance } from "./svc-instances-stand.ts";

/** Milliseconds by which writes of the maintainer are late. */
const LATE_MS = 1500;

interface FenceParts {
  readonly stand: InstancesStand;
  readonly reader: BucketReader;
  readonly maintainer: Instance;
  readonly successor: Instance;
  /** Lets the time of the lease pass, or waits for it. The successor tries to take the lease afterwards. */
  readonly pass: () => Promise<void>;
  /** Fencing number of the lease. */
  readonly fence: () => Promise<number>;
}

/**
 * Runs {@link assertFenced} with two instances of its own, so that nobody else has the lease.
 *
 * @param pass lets the time of the lease pass, or waits for it
 */
export async function assertFencedFleet(
  database: "postgres" | "sqlite",
  pass: (stand: InstancesStand) => Promise<void>,
): Promise<void> {
  const stand = await InstancesStand.start({ bucket: startVersityGateway, database });
  const reader = stand.bucketReader();
  try {
    const [maintainer, successor] = [await stand.addInstance("a"), await stand.addInstance("b")];
    for (const each of [maintainer, successor]) await stand.ready(each);
    await stand.list(maintainer.svc);
    if (database === "sqlite") await stand.list(successor.svc);
    const fence = async (): Promise<number> =>
      database === "sqlite" ? bucketFence(reader) : databaseFence(stand);
    await assertFenced({ stand, reader, maintainer, successor, pass: async () => pass(stand), fence });
  } finally {
    await reader.close();
    await stand.stop();
  }
}

/**
 * The maintainer of acme/widgets is paused while merged packs of it are on their way to the bucket. Another instance takes its
 * lease, and merges packs, too. What the maintainer writes then must not replace that.
 */
async function assertFenced(parts: FenceParts): Promise<void> {
  const { stand, reader, maintainer, successor, pass, fence } = parts;
  const kept = await stand.tryClone(addressOf(maintainer.svc.url, "widgets"), ["--mirror"]);
  assert.ok(kept !== undefined);
  const mirrorOf = ({ svc }: Instance): string => join(svc.dataDir, "cache/acme/widgets.git");
  const packsOf = async (instance: Instance): Promise<number> =>
    (await readdir(join(mirrorOf(instance), "objects/pack"))).filter((each) => each.endsWith(".pack")).length;
  const pushAndFetch = async ({ svc }: Instance): Promise<void> => {
    await stand.host.push("acme", "widgets");
    const args = ["-C", kept, "fetch", "-q", addressOf(svc.url, "widgets"), "+refs/*:refs/*"];
    await git(args, { env: gitEnvironment() });
  };
  const current = async (): Promise<ReadManifest> => {
    const manifest = await reader.check("acme", "widgets");
    assert.ok(manifest !== undefined);
    return manifest;
  };
  // The lease is taken for the first merge.
  const before = await until(async () => {
    await pushAndFetch(maintainer);
    const manifest = await reader.manifest("acme", "widgets");
    return manifest !== undefined && manifest.fence > 0 && manifest;
  });
  assert.equal(before.fence, await fence());
  await stand.uploaded(maintainer);
  // The next merge is made here, and its writes are late.
  maintainer.s3.inject(["put"], { delayMs: LATE_MS });
  await until(async () => {
    const count = await packsOf(maintainer);
    await pushAndFetch(maintainer);
    return (await packsOf(maintainer)) <= count;
  });
  process.kill(maintainer.svc.pid, "SIGSTOP");
  await pass();
  const taken = await until(async () => {
    await pushAndFetch(successor);
    const manifest = await current();
    return manifest.fence > before.fence && manifest;
  });
  assert.equal(taken.fence, await fence());
  maintainer.s3.heal();
  process.kill(maintainer.svc.pid, "SIGCONT");
  let last = taken;
  const checkNext = async (): Promise<void> => {
    const next = await current();
    assert.ok(next.generation >= last.generation, "an older manifest was put back");
    assert.ok(next.fence >= last.fence, "a write under the old lease was accepted");
    last = next;
  };
  // The first one goes on without the lease: it adds packs, and both have the same.
  for (const each of [maintainer, successor, maintainer, successor]) {
    await pushAndFetch(each);
    await checkNext();
  }
  await reader.hasTip("acme", "widgets", stand.path);
  await checkNext();
  for (const each of [maintainer, successor]) {
    await stand.cloneRight(each);
    await git(["-C", mirrorOf(each), "fsck", "--full", "--strict", "--no-dangling"]);
  }
}

/** Fencing number of the lease in the bucket. */
async function bucketFence(reader: BucketReader): Promise<number> {
  const bytes = await reader.bytes(reader.keyOf("acme", "widgets", "maintainer.json"));
  return (JSON.parse(String(bytes)) as { fence: number }).fence;
}

/** Fencing number of the lease in the common database. */
async function databaseFence(stand: InstancesStand): Promise<number> {
  return Number(await stand.sql("SELECT fence FROM leases WHERE name LIKE 'packs %/acme/widgets'"));
}
