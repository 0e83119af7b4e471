import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, it } from "node:test";
import { LEFT_OUT } from "./left-out.ts";
import { runAsPlatform } from "./run-as-platform.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
/** The shortest tests: `npm run test:platform` runs all. */
const SHORT = ["agent-files/", "agent/src/platform/", "sync/edit/", "packages/config/", "base/src/system/"];

describe("tests as another platform", () => {
  for (const system of ["win32", "darwin"] as const) {
    it(`pass as ${system}`, async () => {
      const { code, output } = await runAsPlatform(ROOT, system, SHORT, "pipe");
      assert.equal(code, 0, output);
    });
  }

  it("are left out only if they exist", () => {
    for (const { file, title = "" } of LEFT_OUT) {
      const text = readFileSync(resolve(ROOT, file), "utf8");
      // The titles of faults.test.ts are names of files, with spaces.
      const isNamed = [
        title,
        title.replaceAll(" ", "-"),
        title.split(/ (?:folder|database|key file) /)[0] ?? "",
      ];
      assert.ok(
        isNamed.some((each) => text.includes(each)),
        `${file}: ${title}`,
      );
    }
  });
});
