import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, repositories, run, tempFolder, type TempFolder } from "@devplat/testkit";
import type { Moment } from "./git-mirror-full-disk-child.ts";
import { packBetween } from "./git-mirror-stand.ts";

const CHILD = join(import.meta.dirname, "git-mirror-full-disk-child.ts");
/** Bytes of the disk, and of other data on it at first: room for one pack of half a megabyte, not for three. */
const DISK_BYTES = 8 * 2 ** 20;
const BALLAST_BYTES = DISK_BYTES - 1.4 * 2 ** 20;

describe("a store on a disk that is full", () => {
  let folder: TempFolder;
  let said: Record<"full" | "locked" | "merged" | "after", Moment> & {
    readonly unmade: Moment & { readonly seeds: number };
    readonly sound: readonly string[];
  };
  const steps: [string, string][] = [];

  before(async () => {
    folder = await tempFolder("svc-full");
    const source = join(folder.path, "source.git");
    await repositories.bigBlobs(source, { blobs: 4, bytes: 2 ** 19 });
    const tips = (await git(["-C", source, "rev-list", "--reverse", "main"])).split("\n");
    for (const [at, oid] of tips.entries()) {
      steps.push([oid, await packBetween(source, folder.path, tips[at - 1], oid)]);
    }
    const disk = join(folder.path, "disk");
    await mkdir(disk);
    // A file system of its own, seen by the child alone.
    const script = `mount -t tmpfs -o size=${DISK_BYTES} tmpfs "$1" && shift && exec "$@"`;
    const node = [process.execPath, "--disable-warning=ExperimentalWarning", CHILD];
    const args = ["--map-root-user", "--mount", "sh", "-c", script, "sh", disk, ...node, disk];
    const { code, stdout, stderr } = await run("unshare", [...args, JSON.stringify(steps)], {
      env: { ...process.env, BALLAST_BYTES: String(Math.floor(BALLAST_BYTES)) },
      timeoutMs: 120_000,
    });
    assert.equal(code, 0, stderr);
    said = JSON.parse(stdout) as typeof said;
  });
  after(() => folder.remove());

  it("a fill that finds no room ends with ENOSPC, and the store is as before it", () => {
    const { code, clean, at, served, leftovers } = said.full;
    assert.equal(code, "ENOSPC");
    assert.ok(at >= 0 && at < steps.length - 1, `it stands at ${at} of ${steps.length}`);
    assert.deepEqual({ clean, served, leftovers }, { clean: true, served: true, leftovers: [] });
  });

  it("a fill without room for its lock leaves no files [svc 2.32]", () => {
    const { code, clean, at, served, leftovers } = said.locked;
    assert.equal(code, "ENOSPC");
    assert.equal(at, said.full.at);
    assert.deepEqual({ clean, served, leftovers }, { clean: true, served: true, leftovers: [] });
  });

  it("a merge that finds no room leaves the store as before it", () => {
    const { clean, at, served, leftovers } = said.merged;
    assert.equal(at, said.full.at);
    assert.deepEqual({ clean, served, leftovers }, { clean: true, served: true, leftovers: [] });
  });

  it("a seed that finds no room leaves no files, and is made when there is room", () => {
    const { code, clean, served, leftovers, seeds } = said.unmade;
    assert.equal(code, "ENOSPC");
    assert.deepEqual(
      { clean, served, leftovers, seeds },
      { clean: true, served: true, leftovers: [], seeds: 0 },
    );
    assert.deepEqual(said.sound, ["pack", "idx", "rev", "graph"]);
  });

  it("continues when there is room again", () => {
    const expected = { code: undefined, clean: true, at: steps.length - 1, served: true, leftovers: [] };
    assert.deepEqual({ ...said.after, code: said.after.code }, expected);
  });
});
