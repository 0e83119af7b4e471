import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readOptions } from "./options.ts";

describe("readOptions", () => {
  it("has all platforms and formats by default", () => {
    const options = readOptions(["--out", "/o"]);
    assert.deepEqual(
      [options?.out, options?.platforms.length, options?.formats.length, options?.allowChanges],
      ["/o", 5, 4, false],
    );
    assert.deepEqual(options?.programs, ["svc", "agent"]);
    assert.deepEqual(readOptions(["--out", "/o", "--programs", "agent"])?.programs, ["agent"]);
    assert.equal(readOptions(["--help"]), undefined);
    assert.deepEqual(readOptions(["--out", "/o", "--formats", "none"])?.formats, []);
  });

  for (const [args, message] of [
    [[], /--out DIR/],
    [["--out", "/o", "--version", "1.2"], /version "1\.2"/],
    [["--out", "/o", "--version", "01.2.3"], /version/],
    [["--out", "/o", "--version", "1.2.3-dirty"], /version/],
    [["--out", "/o", "--platforms", "linux-x64,plan9"], /"plan9" in --platforms: it takes linux-x64/],
    [["--out", "/o", "--programs", "git"], /"git" in --programs: it takes svc, agent/],
    [["--out", "/o", "--formats", "msi"], /"msi" in --formats/],
    [["--out", "/o", "--url", "here"], /--url "here"/],
    [["--out", "/o", "--publisher", "A b"], /--publisher/],
    [["--out", "/o", "--nothing"], /nothing/],
  ] as const) {
    it(`refuses: ${args.join(" ")}`, () => {
      assert.throws(() => readOptions(args), message);
    });
  }
});
