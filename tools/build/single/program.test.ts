import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";
import { buildProgram, PROGRAMS } from "./program.ts";
import { startedFunctions } from "./started-functions.ts";

/** Runs before the program in its process, and writes down for each script with compiled code whether V8 rejected the code. */
const PROBE = `const vm = require("node:vm");
vm.Script = class Script extends vm.Script {
  constructor(text, options) {
    super(text, options);
    if (options?.cachedData === undefined) return;
    require("node:fs").appendFileSync(process.env.REPORT, options.filename + " " + this.cachedDataRejected + "\\n");
  }
};`;

let folder: TempFolder;
before(async () => {
  folder = await tempFolder("program");
});
after(() => folder.remove());

describe("single executables", () => {
  for (const name of PROGRAMS) {
    it(`of ${name} accept their compiled code`, async () => {
      const program = await buildProgram(name, join(folder.path, name), "1.2.3");
      const probe = join(folder.path, "probe.cjs");
      await writeFile(probe, PROBE);
      const report = join(folder.path, "report");
      const reported = async (args: readonly string[], flags = ""): Promise<string> => {
        await rm(report, { force: true });
        const env = { ...process.env, NODE_OPTIONS: `${flags} --require=${probe}`, REPORT: report };
        const { stdout, stderr } = await run(program, args, { env });
        assert.match(stdout, /^Usage: /, stderr);
        return await readFile(report, "utf8");
      };
      assert.equal(await reported(["--help"]), "program.cjs false\n");
      // Commands with a list of functions have code of their own.
      for (const command of Object.keys(startedFunctions(name))) {
        assert.equal(await reported([command, "--help"]), "program.cjs false\n", command);
      }
      assert.equal(
        await reported(["--help"], "--jitless"),
        "program.cjs true\n",
        "the probe sees a rejection",
      );
    });
  }
});
