import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { run, tempFolder } from "@devplat/testkit";
import { readmeExamples } from "@devplat/testkit/readme-examples";
import { ROOT } from "./sources.ts";

/** Packages with their own test for the examples, which show files before and after or need a repository. */
const TESTED_THERE = new Set(["document-edit", "git-store"]);
const IMPORT = /(?<=from )"(?=@devplat\/|\w)([^":]+)"/g;
/** Comment after or below an example, with its output. */
const COMMENT = /(?:^|;\s*)\/\/ (.*)$/gm;

describe("READMEs of the packages", () => {
  const names = globSync("packages/*/README.md", { cwd: ROOT }).map((path) => path.split("/")[1] ?? "");

  for (const name of names.filter((each) => !TESTED_THERE.has(each)).toSorted()) {
    it(`the example of ${name} prints what it says`, async () => {
      const readme = readFileSync(join(ROOT, "packages", name, "README.md"), "utf8");
      const [example = "", ...more] = readmeExamples(readme);
      assert.equal(more.length, 0, "one example says how to begin");
      const folder = await tempFolder("readme");
      try {
        const file = join(folder.path, "example.ts");
        await writeFile(
          file,
          example.replaceAll(IMPORT, (_, module: string) => JSON.stringify(import.meta.resolve(module))),
        );
        const args = ["--disable-warning=ExperimentalWarning", file];
        const { code, stdout, stderr } = await run(process.execPath, args, { cwd: folder.path });
        assert.equal(code, 0, stderr);
        const said = [...example.matchAll(COMMENT)].map(([, text = ""]) => text);
        const printed = stdout.trimEnd().split("\n");
        assert.ok(stdout !== "", "an example shows something");
        assert.deepEqual(
          printed.filter((line) => !said.includes(line)),
          [],
        );
      } finally {
        await folder.remove();
      }
    });
  }
});
