import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { repositories, startVersityGateway, until } from "@devplat/testkit";
import type { BucketReader, ReadManifest } from "./svc-bucket-reader.ts";
import { InstancesStand, type Instance } from "./svc-instances-stand.ts";

/** Larger than one slice, so that objects have slice lists. */
const BIG = { blobs: 2, bytes: 900_000 };

interface Target {
  readonly name: string;
  /** Makes another repository like this one. */
  readonly other: () => Promise<string>;
  readonly manifest: ReadManifest;
}

interface Tampering {
  readonly title: string;
  /** Action of the writer of the bucket. */
  readonly act: (target: Target) => Promise<void>;
  /** Reason with which the manifest is refused. */
  readonly refused?: "forged" | "malformed";
}

describe("somebody who can write to the bucket", { timeout: 300_000 }, () => {
  let stand: InstancesStand;
  let reader: BucketReader;
  let a: Instance;
  let b: Instance;
  let count = 0;
  const paths = new Map<string, string>();
  /** Ids of repositories at A. */
  const ids = new Map<string, string>();
  before(async () => {
    stand = await InstancesStand.start({ bucket: startVersityGateway, database: "sqlite" });
    reader = stand.bucketReader();
    [a, b] = await Promise.all([stand.addInstance("a"), stand.addInstance("b")]);
    for (const each of [a, b]) await stand.ready(each);
  });
  after(async () => {
    await reader?.close();
    await stand?.stop();
  });

  const clone = async (instance: Instance, name: string, ...args: string[]): Promise<void> => {
    const path = paths.get(name);
    assert.ok(path !== undefined);
    await stand.cloneRight(instance, name, path, args);
  };
  /** A repository with packs and a response in the bucket, of which only A knows. */
  const cached = async (): Promise<string> => {
    const name = `r${++count}`;
    const { path } = await stand.host.addRepository("acme", name, {
      private: true,
      build: (dir) => repositories.bigBlobs(dir, { ...BIG, seed: count }),
    });
    paths.set(name, path);
    ids.set(name, await stand.list(a.svc, name));
    await stand.list(b.svc, name);
    for (let use = 0; use < 3; use++) await clone(a, name);
    await until(async () => {
      const manifest = await reader.manifest("acme", name);
      return (manifest?.packs.length ?? 0) > 0 && (manifest?.responses.length ?? 0) > 0;
    });
    await stand.uploaded(a, name);
    return name;
  };
  const keyOf = (name: string, file: string): string => reader.keyOf("acme", name, file);
  const manifestOf = async (name: string): Promise<Buffer> => {
    const bytes = await reader.bytes(keyOf(name, "manifest.json"));
    assert.ok(bytes !== undefined);
    return bytes;
  };
  const put = async (name: string, file: string, bytes: Buffer): Promise<void> => {
    await reader.store.put(keyOf(name, file), bytes);
  };
  const putManifest = async (name: string, bytes: Buffer): Promise<void> => put(name, "manifest.json", bytes);
  const objectsOf = ({ packs, responses }: ReadManifest): string[] => [
    ...packs.flatMap(({ files }) => Object.values(files).map((file) => file.name)),
    ...responses.map(({ object }) => object.name),
  ];
  /** Replaces each object, with its slice list. */
  const replaceEach = async (
    { name, manifest }: Target,
    bytesFor: (object: string, before: Buffer) => Promise<Buffer> | Buffer,
  ): Promise<void> => {
    for (const object of objectsOf(manifest)) {
      for (const file of [object, `${object}.slices`]) {
        const bytes = await reader.bytes(keyOf(name, file));
        if (bytes !== undefined) await put(name, file, await bytesFor(file, bytes));
      }
    }
  };

  const TAMPERINGS: readonly Tampering[] = [
    {
      title: "forges a manifest",
      act: async ({ name, manifest }) => {
        const bytes = await manifestOf(name);
        const [, oid = ""] = manifest.refs[0] ?? [];
        await putManifest(name, Buffer.from(bytes.toString().replaceAll(oid, "0123456789".repeat(4))));
      },
      refused: "forged",
    },
    {
      title: "puts the manifest of another repository there",
      act: async ({ name, other }) => putManifest(name, await manifestOf(await other())),
      refused: "forged",
    },
    {
      title: "puts the manifest and all objects of another repository there",
      act: async ({ name, other: makeOther }) => {
        const other = await makeOther();
        for (const object of objectsOf((await reader.manifest("acme", other))!)) {
          for (const file of [object, `${object}.slices`]) {
            const bytes = await reader.bytes(keyOf(other, file));
            if (bytes !== undefined) await put(name, file, bytes);
          }
        }
        await putManifest(name, await manifestOf(other));
      },
      refused: "forged",
    },
    {
      title: "cuts a manifest",
      act: async ({ name }) => putManifest(name, (await manifestOf(name)).subarray(0, -10)),
      refused: "malformed",
    },
    {
      title: "swaps the objects of two repositories",
      act: async (target) => {
        const other = await target.other();
        const names = objectsOf((await reader.manifest("acme", other))!);
        const kindOf = (file: string): string => file.replace(/^(.*?\/).*?(\..*)?$/, "$1$2");
        await replaceEach(target, async (file, old) => {
          const twin = [...names, ...names.map((each) => `${each}.slices`)].find(
            (each) => kindOf(each) === kindOf(file),
          );
          return (twin !== undefined && (await reader.bytes(keyOf(other, twin)))) || old;
        });
      },
    },
    {
      title: "changes a byte of each object",
      act: async (target) =>
        replaceEach(target, (_, old) => {
          const at = Math.floor(old.length / 2);
          return Buffer.concat([
            old.subarray(0, at),
            Buffer.from([(old[at] ?? 0) ^ 1]),
            old.subarray(at + 1),
          ]);
        }),
    },
    {
      title: "replaces objects and their slice lists by random bytes of their length",
      act: async (target) => replaceEach(target, (_, old) => randomBytes(old.length)),
    },
    {
      title: "deletes all objects that a manifest names",
      act: async ({ name, manifest }) => {
        for (const object of objectsOf(manifest)) await reader.store.delete(keyOf(name, object));
      },
    },
  ];
  for (const { title, act, refused } of TAMPERINGS) {
    it(`who ${title}: clones are right, and the bucket is repaired`, async () => {
      const name = await cached();
      const manifest = await reader.check("acme", name);
      assert.ok(manifest !== undefined);
      await act({ name, other: cached, manifest });
      const earlier = refused === undefined ? 0 : await refusals(b, refused);
      stand.host.resetCalls();
      await clone(b, name);
      await clone(b, name, "--no-tags");
      assert.ok(stand.fetches() > 0, "the content comes from the code host");
      if (refused !== undefined) assert.ok((await refusals(b, refused)) > earlier, "it is counted");
      // The instance that has the data repairs the bucket for the others.
      await stand.host.push("acme", name);
      for (let use = 0; use < 3; use++) await clone(b, name);
      await stand.uploaded(b, name);
      await until(async () => {
        // A fresh reader reads all objects again.
        const fresh = stand.bucketReader();
        try {
          const checked = await fresh.check("acme", name);
          return (checked?.packs.length ?? 0) > 0;
        } finally {
          await fresh.close();
        }
      });
    });
  }

  it("who puts an old manifest back: nothing that was purged is served", async () => {
    const name = await cached();
    const old = await manifestOf(name);
    await stand.host.push("acme", name, { commits: 2 });
    await clone(a, name);
    await stand.uploaded(a, name);
    await until(async () => (await reader.manifest("acme", name))!.packs.length > 1);
    await clone(b, name);
    await putManifest(name, old);
    // Both know a newer one, and a third does not.
    for (const instance of [a, b]) await clone(instance, name, "--no-tags");
    const c = await stand.addInstance("c");
    await stand.ready(c);
    await stand.list(c.svc, name);
    await clone(c, name);
    // After a purge, manifests of the epochs before it are not used where the purge is known.
    await stand.call(a.svc, "POST", `/api/cached-repos/${ids.get(name)}/purge`);
    await until(async () => {
      const purged = await reader.manifest("acme", name);
      return purged !== undefined && purged.packs.length === 0 && purged.responses.length === 0;
    });
    await putManifest(name, old);
    const earlier = await refusals(a, "old_epoch");
    stand.host.resetCalls();
    await clone(a, name);
    assert.equal(stand.fetches(), 1, "nothing of before the purge is served");
    // A manifest of its own that is younger than a second is not read again by requests, but by the upload that follows.
    await until(async () => (await refusals(a, "old_epoch")) > earlier);
    await until(async () => ((await reader.check("acme", name))?.packs.length ?? 0) > 0);
  });

  async function refusals({ svc }: Instance, reason: string): Promise<number> {
    const text = await (await fetch(svc.metricsUrl)).text();
    const found = new RegExp(
      `^svc_cache_object_manifests_refused_total\\{reason="${reason}"\\} (\\d+)$`,
      "m",
    );
    return Number(found.exec(text)?.[1] ?? 0);
  }
});
