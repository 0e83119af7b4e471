import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { findPlaces } from "../agent-files/places.ts";
import { expandHome, targetPathFault } from "../config/sections/rule.ts";
import { splitPath } from "../sync/target/follow-links.ts";
import { isWithin } from "../sync/target/target-policy.ts";
import { platformOf } from "./platform.ts";

const [linux, mac, windows] = [platformOf("linux"), platformOf("darwin"), platformOf("win32")];

describe("findPlaces on other systems", () => {
  it("on Windows uses AppData: Roaming for the configuration, Local for the rest", () => {
    const environment = {
      HOME: "C:\\Users\\ada",
      APPDATA: "C:\\Users\\ada\\AppData\\Roaming",
      LOCALAPPDATA: "D:\\Local",
      ProgramData: "E:\\ProgramData",
    };
    const { platform, ...places } = findPlaces(environment, windows);
    assert.equal(platform, windows);
    assert.deepEqual(places, {
      home: "C:\\Users\\ada",
      systemConfigs: ["E:\\ProgramData\\daemon\\config.yaml"],
      userConfig: "C:\\Users\\ada\\AppData\\Roaming\\daemon\\config.yaml",
      configFolder: "C:\\Users\\ada\\AppData\\Roaming\\daemon",
      state: "D:\\Local\\daemon\\state",
      data: "D:\\Local\\daemon\\data",
      cache: "D:\\Local\\daemon\\cache",
      runtime: "D:\\Local\\daemon\\state",
      tokenFile: "C:\\Users\\ada\\.daemon-token",
    });
  });

  it("on Windows an XDG variable goes before AppData, in the form of the system", () => {
    const { state, systemConfigs, userConfig } = findPlaces(
      { HOME: "C:/h", XDG_STATE_HOME: "D:/s", XDG_CONFIG_DIRS: "D:\\a;relative" },
      windows,
    );
    assert.equal(state, "D:\\s\\daemon");
    assert.equal(userConfig, "C:\\h\\AppData\\Roaming\\daemon\\config.yaml");
    assert.deepEqual(systemConfigs, ["D:\\a\\daemon\\config.yaml", "C:\\ProgramData\\daemon\\config.yaml"]);
  });

  it("on macOS only the system's folder differs", () => {
    const places = findPlaces({ HOME: "/Users/ada" }, mac);
    assert.deepEqual(places.systemConfigs, ["/Library/Application Support/daemon/config.yaml"]);
    assert.deepEqual(
      { ...places, platform: linux, systemConfigs: [] },
      { ...findPlaces({ HOME: "/Users/ada" }, linux), systemConfigs: [] },
    );
  });
});

describe("paths of rules on Windows", () => {
  const fine = [
    "~/.npmrc",
    "~\\.npmrc",
    "~/.config/x.y/z~1.yaml backup",
    "C:\\a\\b",
    "c:/a/b",
    "~/console",
    "~/com10",
  ];
  for (const path of fine) {
    it(`takes ${path}`, () => assert.equal(targetPathFault(path, windows), undefined));
  }
  const refused: [path: string, fault: RegExp][] = [
    ["/etc/x", /drive/],
    ["\\x", /drive/],
    ["C:x", /absolute/],
    ["x", /absolute/],
    ["~ada/x", /another user/],
    ["~\\..\\x", /\.\. segments/],
    ["C:\\a\\.\\b", /\.\. segments/],
    ["C:\\a\\", /not a folder/],
    ["\\\\server\\share\\x", /another host/],
    ["//server/share/x", /another host/],
    ["\\\\.\\pipe\\x", /segments/],
    ["\\\\?\\C:\\x", /begin with/],
    ["~/.ssh/authorized_keys.", /dot or a space/],
    ["~/.ssh/authorized_keys ", /dot or a space/],
    ["~/.ssh./x", /dot or a space/],
    ["~/.ssh/authorized_keys::$DATA", /does not allow/],
    ["~/C:x", /does not allow/],
    ["~/a\tb", /does not allow/],
    ["~/AUTHOR~1", /short name/],
    ["~/SSH~1/x", /short name/],
    ["~/nul", /device/],
    ["~/Con.txt", /device/],
    ["C:\\lpt1\\x", /device/],
  ];
  for (const [path, fault] of refused) {
    it(`refuses ${JSON.stringify(path)}`, () => assert.match(targetPathFault(path, windows) ?? "", fault));
  }

  it("expands ~ to the form that the system gives", () => {
    for (const path of ["~/.aws/config", "~\\.aws\\config", "C:/Users/ada/.aws/config"])
      assert.equal(expandHome(path, "C:\\Users\\ada", windows), "C:\\Users\\ada\\.aws\\config");
    assert.equal(expandHome("~", "C:\\Users\\ada", windows), "C:\\Users\\ada");
    assert.equal(expandHome("~\\x", "/h", linux), "~\\x", "a backslash is a letter of names elsewhere");
  });

  it("no path that is taken leads out of the home folder", () => {
    const name = fc.string({
      unit: fc.constantFrom("a", "A", ".", "~", "1", ":", "\\", "/", " ", "$"),
      maxLength: 14,
    });
    fc.assert(
      fc.property(name, (rest) => {
        const path = `~/${rest}`;
        if (targetPathFault(path, windows) !== undefined) return;
        const full = expandHome(path, "C:\\home", windows);
        assert.ok(isWithin(full, "C:\\HOME", windows), full);
        assert.doesNotMatch(full.slice(2), /:/);
      }),
    );
  });
});

describe("isWithin", () => {
  const table: [name: string, path: string, folder: string, on: typeof linux, expected: boolean][] = [
    ["linux keeps letter case", "/H/x", "/h", linux, false],
    ["macOS folds it", "/H/x", "/h", mac, true],
    ["Windows folds it, and its separators", "c:/Users/ADA/x", "C:\\Users\\ada", windows, true],
    ["a name that only begins alike is outside", "C:\\Users\\adam", "C:\\Users\\ada", windows, false],
    ["a drive holds its files", "c:\\x", "C:\\", windows, true],
    ["the folder itself is in it", "/h", "/h", linux, true],
  ];
  for (const [name, path, folder, on, expected] of table)
    it(name, () => assert.equal(isWithin(path, folder, on), expected));
});

describe("splitPath", () => {
  const table: [path: string, on: typeof linux, root: string, names: string[]][] = [
    ["/a//b", linux, "/", ["a", "b"]],
    ["../b\\c", linux, "", ["..", "b\\c"]],
    ["C:\\a\\b", windows, "C:\\", ["a", "b"]],
    ["c:/a/b", windows, "c:\\", ["a", "b"]],
    ["..\\b/c", windows, "", ["..", "b", "c"]],
    ["\\\\server\\share\\a", windows, "\\\\server\\share\\", ["a"]],
  ];
  for (const [path, on, root, names] of table)
    it(`${path} on ${on.system}`, () => assert.deepEqual(splitPath(path, on.path), { root, names }));
});
