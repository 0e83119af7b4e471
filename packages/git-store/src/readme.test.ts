import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { readmeExamples } from "@devplat/testkit/readme-examples";
import { buildRepository, git, temporaryFolder } from "../test/git.test-kit.ts";

const README = new URL("../README.md", import.meta.url);

for (const [i, example] of readmeExamples(readFileSync(README, "utf8")).entries()) {
  test(`example ${i + 1} of the README runs`, async (t) => {
    using folder = temporaryFolder();
    const source = buildRepository(folder.path);
    writeFileSync(
      join(folder.path, "clone.pack"),
      git(source, ["pack-objects", "--stdout", "--revs", "-q"], "main\n"),
    );
    writeFileSync(join(folder.path, "tip"), git(source, ["rev-parse", "main"]));
    const file = join(folder.path, "example.ts");
    // A package finds itself by its name, as its users find it.
    const resolved = example.replaceAll(/"(@devplat\/[^"]+)"/g, (_, name: string) =>
      JSON.stringify(import.meta.resolve(name)),
    );
    writeFileSync(file, resolved);
    // It would stand between the results of the tests.
    t.mock.method(console, "log", () => undefined);
    // Examples use relative paths.
    const before = process.cwd();
    process.chdir(folder.path);
    try {
      await assert.doesNotReject(import(pathToFileURL(file).href));
    } finally {
      process.chdir(before);
    }
  });
}
