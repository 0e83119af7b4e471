import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkAllowed } from "./allowed-paths.ts";
import { checkVolumeName, parseVolumeOptions } from "./volume-options.ts";

const DEFAULTS = { layout: "json", mode: 0o400, uid: undefined, gid: undefined, ttlMs: undefined };

describe("options of a volume", () => {
  it("have defaults for all but secrets", () => {
    assert.deepEqual(parseVolumeOptions({ secrets: "demo/registry,team/" }, false), {
      secrets: ["demo/registry", "team/"],
      ...DEFAULTS,
    });
  });

  it("set layout, mode, owner and interval", () => {
    const given = { secrets: "a", layout: "fields", mode: "0444", uid: "0", gid: "4294967294", ttl: "1m30s" };
    assert.deepEqual(parseVolumeOptions(given, true), {
      secrets: ["a"],
      layout: "fields",
      mode: 0o444,
      uid: 0,
      gid: 4_294_967_294,
      ttlMs: 90_000,
    });
    assert.equal(parseVolumeOptions({ secrets: "a", mode: "440" }, false).mode, 0o440);
  });

  const wrong: [Record<string, string>, RegExp][] = [
    [{}, /secrets is missing/],
    [{ secrets: "" }, /secrets is missing/],
    [{ secrets: "/" }, /cannot be \/ alone/],
    [{ secrets: "a,,b" }, /secrets is not a list of paths/],
    [{ secrets: "a/../b" }, /secrets is not a list of paths/],
    [{ secrets: "/a" }, /secrets is not a list of paths/],
    [{ secrets: "a//" }, /secrets is not a list of paths/],
    [{ secrets: "a\nb" }, /secrets is not a list of paths/],
    [{ secrets: Array.from({ length: 101 }, (_, index) => `s${index}`).join(",") }, /more than 100/],
    [{ secrets: "a", layout: "both" }, /layout is neither/],
    [{ secrets: "a", mode: "0600" }, /mode may have read bits only/],
    [{ secrets: "a", mode: "0000" }, /mode may have read bits only/],
    [{ secrets: "a", mode: "1444" }, /mode is not an octal mode/],
    [{ secrets: "a", mode: "r" }, /mode is not an octal mode/],
    [{ secrets: "a", uid: "root" }, /uid is not a number/],
    [{ secrets: "a", gid: "4294967295" }, /gid is not a number/],
    [{ secrets: "a", ttl: "soon" }, /ttl is not a duration/],
    [{ secrets: "a", ttl: "11m" }, /ttl must be from/],
    [{ secrets: "a", ttl: "10ms" }, /ttl must be from/],
    [{ secrets: "a", Secrets: "b" }, /no volume option "Secrets"/],
    [{ secrets: "a", ["__proto__x"]: "b" }, /no volume option "__proto__x"/],
  ];
  it("that are wrong or unknown are refused by name", () => {
    for (const [options, message] of wrong) {
      assert.throws(
        () => parseVolumeOptions(options, true),
        { code: "option_invalid", message },
        JSON.stringify(options),
      );
    }
  });

  it("uid and gid are refused by name for a daemon that does not run as root", () => {
    for (const name of ["uid", "gid"]) {
      assert.throws(() => parseVolumeOptions({ secrets: "a", [name]: "0" }, false), {
        code: "option_invalid",
        message: `the volume option ${name} needs a daemon that runs as root`,
        hint: /mode=0444/,
      });
    }
  });
});

describe("names of volumes", () => {
  it("follow Docker's pattern", () => {
    for (const name of ["app", "a1", "A.b-c_d", "x".repeat(255)]) checkVolumeName(name);
    const refused = [
      "",
      "a",
      ".ab",
      "-ab",
      "_ab",
      "..",
      "a/b",
      "../ab",
      "a\nb",
      "ab\n",
      "a\0b",
      "äb",
      "a b",
      "x".repeat(256),
    ];
    for (const name of refused)
      assert.throws(() => checkVolumeName(name), { code: "name_invalid" }, JSON.stringify(name));
  });
});

describe("docker.paths", () => {
  const cases: [string, readonly string[] | undefined, boolean, boolean][] = [
    ["a rootful engine has nothing by default", undefined, true, false],
    ["a rootless engine has everything by default", undefined, false, true],
    ["an empty list is nothing for both", [], false, false],
    ["a folder", ["demo/"], true, true],
    ["a folder without a slash", ["demo"], true, true],
    ["another folder with the same beginning", ["dem"], true, false],
    ["everything", ["/"], true, true],
    ["the list counts for a rootless engine too", ["team/"], false, false],
  ];
  for (const [name, paths, isRootful, isAllowed] of cases) {
    it(name, () => {
      const check = (): void => checkAllowed(["demo/registry", "demo/"], paths, isRootful);
      if (isAllowed) check();
      else assert.throws(check, { code: "path_refused", hint: /"demo\/" to docker\.paths/ });
    });
  }
});
