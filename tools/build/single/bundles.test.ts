import assert from "node:assert/strict";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";
import { tempFolder } from "@devplat/testkit";
import { BUNDLERS, PROGRAMS } from "./program.ts";

const ROOT = resolve(import.meta.dirname, "../../..");

describe("bundles of a release", () => {
  for (const name of PROGRAMS) {
    it(`of ${name} are equal for each build, and name no folder of the machine`, async () => {
      const folder = await tempFolder("bundles");
      const builds: Map<string, string>[] = [];
      for (const build of ["one", "two"]) {
        const out = join(folder.path, build);
        await mkdir(out);
        await BUNDLERS[name](out, "1.2.3");
        const files = (await readdir(out)).toSorted();
        builds.push(
          new Map(
            await Promise.all(
              files.map(async (file) => [file, await readFile(join(out, file), "utf8")] as const),
            ),
          ),
        );
      }
      assert.deepEqual(builds[0], builds[1]);
      for (const [file, text] of builds[0] ?? []) {
        assert.ok(!text.includes(ROOT) && !text.includes(folder.path), file);
      }
      assert.match([...(builds[0]?.values() ?? [])].join(), /version:"1\.2\.3"/);
      await folder.remove();
    });
  }
});
