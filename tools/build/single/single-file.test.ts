import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Script } from "node:vm";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";
import { compiledBundle, FIXED_HASHES, useRandomHashes } from "./compiled-code.ts";
import { singleFile } from "./single-file.ts";
import { stripElf } from "./strip-elf.ts";

let folder: TempFolder;
before(async () => {
  folder = await tempFolder("single-file");
});
after(() => folder.remove());

describe("singleFile", () => {
  it("gives equal bytes for equal parts, and runs", async () => {
    const main = join(folder.path, "main.cjs");
    const asset = join(folder.path, "asset");
    await writeFile(asset, "an asset");
    await writeFile(
      main,
      `const { getAsset } = require("node:sea"); class Name {}
       const table = new Map([["a", 1], ["b", 2]]);
       console.log(getAsset("asset", "utf8"), Name.name, table.size, process.argv.slice(2), process.execArgv.join());`,
    );
    const parts = {
      main,
      assets: { asset },
      engineFlags: ["--max-semi-space-size=1"],
      nodeFlags: ["--disable-warning=ExperimentalWarning"],
      node: process.execPath,
      isOwnPlatform: true,
    };
    const outputs = [join(folder.path, "one"), join(folder.path, "two")];
    for (const output of outputs) await singleFile(parts, output);
    const [one, two] = await Promise.all(outputs.map(async (output) => readFile(output)));
    assert.ok(one !== undefined && two !== undefined && one.equals(two), "the bytes differ");
    assert.ok(one.length < (await stat(process.execPath)).size, "it is stripped");
    const { stdout, stderr } = await run(outputs[0] ?? "", ["x"]);
    assert.deepEqual(
      [stdout, stderr],
      ["an asset Name 2 [ 'x' ] --disable-warning=ExperimentalWarning,--max-semi-space-size=1\n", ""],
    );
  });
});

describe("compiledBundle", () => {
  const flags = ["--max-semi-space-size=8"];
  const text = `(function (exports) { function called() { return [1, 2].map((x) => x + 1); } function other() { return 2; }
    exports.called = called; exports.other = other; })`;

  it("gives equal bytes that a process accepts, with the named functions", async () => {
    const file = join(folder.path, "bundle.cjs");
    await writeFile(file, text);
    const plain = compiledBundle(file, "bundle.cjs", [], flags);
    const code = compiledBundle(file, "bundle.cjs", ["()/called", "()/gone"], flags);
    assert.deepEqual(code, compiledBundle(file, "bundle.cjs", ["()/called"], flags));
    assert.ok(code.length > plain.length, "the function is in it");
    assert.equal(compiledBundle(file, "bundle.cjs", ["()/gone"], flags).length, plain.length);
    await writeFile(`${file}.code`, code);
    const script = `const { readFileSync } = require("node:fs");
      const [, file] = process.argv;
      const script = new (require("node:vm").Script)(readFileSync(file, "latin1"), { filename: "bundle.cjs", cachedData: readFileSync(file + ".code") });
      const exports = {};
      script.runInThisContext()(exports);
      console.log(script.cachedDataRejected, exports.called(), exports.other());`;
    const { stdout } = await run(process.execPath, [...flags, "-e", script, file]);
    assert.equal(stdout, "false [ 2, 3 ] 2\n");
  });
});

describe("useRandomHashes", () => {
  const source = `const text = "a".repeat(3); function f() { return { [text]: 1 }; } f();`;
  // The flags of this process are those that its compiled code has to name.
  const flags = process.execArgv.filter((flag) => flag.startsWith("--max-") || flag.startsWith("--no-opt"));
  const compiled = (): Buffer =>
    execFileSync(process.execPath, [
      ...flags,
      FIXED_HASHES,
      "-e",
      `process.stdout.write(new (require("node:vm").Script)(${JSON.stringify(source)}).createCachedData())`,
    ]);
  const isRejected = (code: Buffer): boolean | undefined =>
    new Script(source, { cachedData: code }).cachedDataRejected;

  it("makes code fit a process that has another number for its hash tables", () => {
    const code = compiled();
    assert.deepEqual(code, compiled());
    assert.equal(isRejected(Buffer.from(code)), true);
    const file = Buffer.concat([Buffer.alloc(100, "before"), code, Buffer.alloc(100, "after")]);
    useRandomHashes(file, process.execPath, flags);
    assert.equal(isRejected(file.subarray(100, 100 + code.length)), false);
  });

  it("refuses a file without compiled code, or with two", () => {
    assert.throws(() => useRandomHashes(Buffer.alloc(1000), process.execPath, flags), /0 places/);
    const two = Buffer.concat([compiled(), compiled()]);
    assert.throws(() => useRandomHashes(two, process.execPath, flags), /2 places/);
  });
});

describe("stripElf", () => {
  it("leaves a program that runs, with the sections that are loaded", async () => {
    const stripped = stripElf(await readFile(process.execPath));
    const file = join(folder.path, "stripped");
    await writeFile(file, stripped, { mode: 0o755 });
    assert.equal((await run(file, ["--version"])).stdout, `${process.version}\n`);
    const sections = (await run("readelf", ["-SW", file])).stdout;
    assert.doesNotMatch(sections, /\.symtab|\.debug_/);
    assert.match(sections, /\.dynsym/);
    assert.deepEqual(stripElf(stripped), stripped);
  });

  it("leaves other files as they are", () => {
    for (const text of ["", "MZ", "\x7fELF"]) {
      const file = Buffer.from(text, "latin1");
      assert.equal(stripElf(file), file);
    }
  });
});
