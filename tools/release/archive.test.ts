import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { run, tempFolder } from "@devplat/testkit";
import { tarGz, zip, type ArchiveFile } from "./archive.ts";

const EPOCH = 1_700_000_000;
const FILES: readonly ArchiveFile[] = [
  { path: "svc-1/svc", content: Buffer.alloc(100_000, "program "), isProgram: true },
  { path: "svc-1/man/svc.1", content: Buffer.from("…\n"), isProgram: false },
  { path: "svc-1/empty", content: Buffer.alloc(0), isProgram: false },
];
const FORMATS = [
  ["tarGz", tarGz, "tar", (file: string) => ["-xzf", file]],
  ["zip", zip, "unzip", (file: string) => ["-q", file]],
] as const;

for (const [name, archive, program, args] of FORMATS) {
  describe(name, () => {
    it("is read by the program of the system, and equal for equal files", async () => {
      const folder = await tempFolder("archive");
      const file = join(folder.path, "archive");
      await writeFile(file, archive(FILES, EPOCH));
      const done = await run(program, args(file), { cwd: folder.path });
      assert.deepEqual([done.code, done.stderr], [0, ""]);
      for (const { path, content } of FILES) {
        const at = join(folder.path, path);
        assert.deepEqual(await readFile(at), content);
        const { mode, mtimeMs } = await stat(at);
        if (name === "zip") continue;
        assert.equal(mtimeMs, EPOCH * 1000);
        assert.equal(mode & 0o777, path.endsWith("/svc") ? 0o755 : 0o644);
      }
      assert.deepEqual(archive(FILES, EPOCH), archive(FILES, EPOCH));
      await folder.remove();
    });
  });
}

describe("tarGz", () => {
  it("refuses a name that does not fit", () => {
    const file = { path: "x".repeat(101), content: Buffer.alloc(0), isProgram: false };
    assert.throws(() => tarGz([file], EPOCH), /its name is too long/);
  });
});
