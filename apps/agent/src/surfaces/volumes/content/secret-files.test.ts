import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseFields } from "@devplat/secret-store";
import { secretFiles } from "./secret-files.ts";

function filesOf(
  secrets: Readonly<Record<string, string>>,
  layout: "json" | "fields" = "json",
): { files: Record<string, string>; omitted: readonly string[] } {
  const { files, omitted } = secretFiles(
    new Map(Object.entries(secrets).map(([path, text]) => [path, parseFields(text)])),
    layout,
  );
  return {
    files: Object.fromEntries([...files].map(([path, content]) => [path, content.toString()])),
    omitted,
  };
}

describe("the files of a volume", () => {
  it("with json are indented documents with numbers as they are stored", () => {
    assert.deepEqual(filesOf({ "demo/registry": '{"b":1.10,"a":{"c":[1e400]}}' }).files, {
      "demo/registry.json": '{\n  "b": 1.10,\n  "a": {\n    "c": [\n      1e400\n    ]\n  }\n}\n',
    });
  });

  it("with fields have exactly the bytes of each field", () => {
    assert.deepEqual(
      filesOf({ demo: '{"key":"line\\r\\n","n":1.10,"none":null,"list":[1,2]}' }, "fields").files,
      {
        "demo/key": "line\r\n",
        "demo/n": "1.10",
        "demo/none": "null",
        "demo/list": "[1,2]",
      },
    );
  });

  it("leave out names that no file can have, and report them", () => {
    const names = ["..", ".", "", "a/b", "nul\0", "half\ud800", "x".repeat(256)];
    const sound = ["new\nline", "x".repeat(255), "\u00e9", "e\u0301", "..a", "__proto__", "-rf", " "];
    const document = JSON.stringify(
      Object.fromEntries(
        [...names, ...sound.filter((each) => each !== "__proto__")].map((each) => [each, "v"]),
      ),
    );
    const { files, omitted } = filesOf({ s: document.replace("{", '{"__proto__":"v",') }, "fields");
    assert.deepEqual(Object.keys(files).toSorted(), sound.map((each) => `s/${each}`).toSorted());
    assert.deepEqual(omitted.toSorted(), names.map((each) => `s#${each}`).toSorted());
    const long = filesOf({ ["x".repeat(250)]: "{}", ["x".repeat(251)]: "{}", "..data": "{}" });
    assert.deepEqual(Object.keys(long.files), [`${"x".repeat(250)}.json`]);
    assert.deepEqual(long.omitted, ["x".repeat(251), "..data"]);
  });

  it("are refused if two secrets want one file, or a file where a folder has to be", () => {
    const clash = { code: "content_unwritable", message: /belongs to another secret/ };
    assert.throws(() => filesOf({ a: '{"b":"1"}', "a/b": '{"c":"2"}' }, "fields"), clash);
    assert.throws(() => filesOf({ "a/b": '{"c":"2"}', a: '{"b":"1"}' }, "fields"), clash);
    assert.throws(() => filesOf({ "a.json/b": "{}", a: "{}" }), clash);
    assert.deepEqual(Object.keys(filesOf({ a: '{"x":"1"}', "a/b": '{"c":"2"}' }, "fields").files), [
      "a/x",
      "a/b/c",
    ]);
  });
});
