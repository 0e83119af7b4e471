import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";
import type { FullDisk } from "./svc-full-disk-child.ts";

const CHILD = join(import.meta.dirname, "svc-full-disk-child.ts");
/** Room for a response of 3 MB and a mirror of as much, and some more. */
const DISK_BYTES = 16 * 2 ** 20;

for (const bucketServer of [undefined, "versitygw", "minio"] as const) {
  describe(`clones while the disk of the cache is full${bucketServer === undefined ? "" : `, with ${bucketServer}`}`, () => {
    let folder: TempFolder;
    let said: Record<"part" | "nothing" | "room", FullDisk>;

    before(async () => {
      folder = await tempFolder("svc-full-disk");
      const disk = join(folder.path, "disk");
      await mkdir(disk);
      // A file system of its own, seen by the child alone.
      const script = `mount -t tmpfs -o size=${DISK_BYTES} tmpfs "$1" && shift && exec "$@"`;
      const node = [
        process.execPath,
        "--disable-warning=ExperimentalWarning",
        CHILD,
        disk,
        bucketServer ?? "",
      ];
      const args = ["--map-root-user", "--mount", "sh", "-c", script, "sh", disk, ...node];
      const { code, stdout, stderr } = await run("unshare", args, {
        env: { ...process.env, DISK_BYTES: String(DISK_BYTES) },
        timeoutMs: 300_000,
      });
      assert.equal(code, 0, stderr);
      said = JSON.parse(stdout) as typeof said;
    });
    after(() => folder.remove());

    for (const [moment, name] of [
      ["part", "there is room for a part of the answer"],
      ["nothing", "there is no room at all"],
    ] as const) {
      it(`succeed where ${name}, and leave no temporary files`, () => {
        const { right, leftovers, log } = said[moment];
        assert.deepEqual(right, [true, true, true]);
        assert.deepEqual(leftovers, []);
        assert.ok(log.length > 0, "it is logged");
        assert.deepEqual(log, [...new Set(log)], "once");
      });
    }

    it("are stored again when there is room [svc 2.31]", () => {
      const { right, leftovers, stored } = said.room;
      assert.deepEqual({ right, leftovers }, { right: [true, true, true], leftovers: [] });
      assert.ok(stored > 0);
    });
  });
}
