import assert from "node:assert/strict";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { run, tempFolder } from "@devplat/testkit";
import { ROOT } from "../root.ts";
import { functionsOf } from "./functions.ts";
import { BUNDLERS, PROGRAMS } from "./program.ts";
import { BUNDLE } from "./program-bundle.ts";
import { startedFunctions } from "./started-functions.ts";

/** Prints which of Node's own modules were compiled from their source. */
const COMPILED_ANEW = `for (const name of ["http", "crypto", "zlib", "net"]) require("node:" + name);
const { internalBinding } = require("internal/test/binding");
console.log(JSON.stringify([...internalBinding("builtins").getCacheUsage().compiledWithoutCache]));`;

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

  it("of svc have most functions of the recorded starts", async () => {
    const folder = await tempFolder("bundles");
    const { assets } = await BUNDLERS.svc(folder.path, "1.2.3");
    const known = functionsOf(await readFile(assets[BUNDLE] ?? "", "latin1"));
    const lists = Object.entries(startedFunctions("svc"));
    assert.deepEqual(
      lists.map(([command]) => command),
      ["serve"],
    );
    for (const [command, names] of lists) {
      const found = names.filter((name) => known.has(name)).length;
      assert.ok(
        found > names.length * 0.85,
        `${command}: ${found} of ${names.length}; npm run record:start writes a new list`,
      );
    }
    await folder.remove();
  });

  it("of svc run with flags under which the compiled code of Node's modules is valid", async () => {
    const folder = await tempFolder("bundles");
    const { engineFlags } = await BUNDLERS.svc(folder.path, "1.2.3");
    const compiledAnew = async (...flags: readonly string[]): Promise<unknown> => {
      const args = ["--no-warnings", "--expose-internals", ...flags, "-e", COMPILED_ANEW];
      const { stdout, stderr } = await run(process.execPath, args);
      assert.notEqual(stdout, "", stderr);
      return JSON.parse(stdout) as unknown;
    };
    assert.deepEqual(await compiledAnew(...engineFlags), []);
    assert.notDeepEqual(await compiledAnew(...engineFlags, "--no-wasm-tier-up"), []);
    await folder.remove();
  });
});
