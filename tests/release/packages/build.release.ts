import assert from "node:assert/strict";
import { copyFile, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";
import { ownPlatform } from "../../../tools/build/single/platforms.ts";

const ROOT = join(import.meta.dirname, "../../..");
const VERSION = "1.2.3-rc.1";
const URL = "https://downloads.example.com/v1.2.3";
/** A release builds ten programs and sixteen packages: some four minutes on an idle machine. */
const LIMIT_MS = 20 * 60_000;

/** The release as `npm run release` makes it, twice: once in this folder, and once in a copy elsewhere. */
describe("npm run release", { timeout: 2 * LIMIT_MS }, () => {
  let folder: TempFolder;
  const at = (...names: string[]): string => join(folder.path, ...names);

  before(async () => {
    folder = await tempFolder("npm-release");
    await must("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at("key")]);
    await writeFile(at("signers"), `release ${await readFile(at("key.pub"), "utf8")}`);
    // A copy of the files as they are now, with the history.
    await must("cp", ["-a", ROOT, at("copy")]);
    for (const [source, out] of [
      [ROOT, at("one")],
      [at("copy"), at("two")],
    ] as const) {
      const options = ["--version", VERSION, "--key", at("key"), "--url", URL, "--allow-changes"];
      const script = join(source, "tools/run.sh");
      await must("sh", [script, "tools/release/release.ts", "--out", out, ...options], {
        cwd: source,
        timeoutMs: LIMIT_MS,
      });
    }
  });
  after(() => folder?.remove());

  it("gives equal bytes in two folders", async () => {
    const names = async (out: string): Promise<string[]> =>
      (await readdir(out, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(out.length + 1))
        .toSorted();
    const files = await names(at("one"));
    assert.ok(files.length > 30, files.join());
    assert.deepEqual(files, await names(at("two")));
    const differing: string[] = [];
    for (const file of files) {
      const [one, two] = await Promise.all([readFile(at("one", file)), readFile(at("two", file))]);
      if (!one.equals(two)) differing.push(file);
    }
    assert.deepEqual(differing, []);
  });

  it("is verified by its own script, which refuses what is broken, and names it", async () => {
    const verify = async () =>
      run("sh", ["verify-release.sh", "--signers", at("signers")], { cwd: at("two") });
    const assertRefused = async (reason: RegExp): Promise<void> => {
      const { code, stderr } = await verify();
      assert.equal(code, 1);
      assert.match(stderr, reason);
    };
    const good = await verify();
    assert.equal(good.code, 0, good.stderr);
    assert.equal(good.stdout.split("\n").length - 1, (await sums()).length);

    const [archive, deb] = [`svc-${VERSION}-linux-x64.tar.gz`, "agent_1.2.3~rc.1-1_amd64.deb"];
    await truncate(at("two", archive), 1_000_000);
    await assertRefused(/svc-1\.2\.3-rc\.1-linux-x64\.tar\.gz is broken: the download was cut off/);
    await copyFile(at("one", archive), at("two", archive));
    const changed = await readFile(at("two", deb));
    changed[changed.length >> 1] = (changed[changed.length >> 1] ?? 0) ^ 1;
    await writeFile(at("two", deb), changed);
    await assertRefused(/agent_1\.2\.3~rc\.1-1_amd64\.deb is broken: .*or the file was changed/);
    await copyFile(at("one", deb), at("two", deb));
    assert.equal((await verify()).code, 0);

    await must("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at("other-key")]);
    await rm(at("two", "SHA256SUMS.sig"));
    await must("ssh-keygen", ["-Y", "sign", "-n", "release", "-f", at("other-key"), at("two", "SHA256SUMS")]);
    await assertRefused(/the signature of SHA256SUMS is wrong.*Do not use these files/);
  });

  it("has programs that say the version of the release", async () => {
    for (const name of ["svc", "agent"]) {
      const archive = `${name}-${VERSION}-${ownPlatform().name}`;
      await must("tar", ["-xzf", at("one", `${archive}.tar.gz`), "-C", folder.path]);
      assert.equal((await must(at(archive, name), ["version"])).trim(), VERSION);
    }
  });

  it("has packages that lintian accepts, with the order of versions of each system", async () => {
    const debs = (await readdir(at("one"))).filter((file) => file.endsWith(".deb"));
    assert.equal(debs.length, 4);
    const options = ["--allow-root", "--fail-on", "error,warning"];
    const checked = await run("lintian", [...options, ...debs], { cwd: at("one"), timeoutMs: LIMIT_MS });
    assert.deepEqual([checked.code, checked.stdout], [0, ""]);
    const version = await must("dpkg-deb", ["-f", at("one", debs[0] ?? ""), "Version"]);
    assert.equal((await run("dpkg", ["--compare-versions", version.trim(), "lt", "1.2.3"])).code, 0);
  });

  it("has the same files in packages of all formats", async () => {
    const lists = await Promise.all(
      (await readdir(at("one")))
        .filter((file) => /^svc.*(?:amd64|x86_64)/.test(file))
        .filter((file) => !file.endsWith(".rpm"))
        .map(async (file) => filesOf(at("one", file))),
    );
    assert.equal(lists.length, 3);
    for (const list of lists) {
      for (const path of [
        "usr/bin/svc",
        "usr/share/man/man1/svc.1.gz",
        "usr/share/bash-completion/completions/svc",
        "usr/share/doc/svc/THIRD-PARTY.gz",
      ]) {
        assert.ok(list.includes(path), `${path} in ${list.join(" ")}`);
      }
    }
  });

  const sums = async (): Promise<string[]> =>
    (await readFile(at("one", "SHA256SUMS"), "utf8")).trim().split("\n");
});

async function filesOf(file: string): Promise<string[]> {
  const list = file.endsWith(".deb")
    ? await must("sh", ["-c", `dpkg-deb --fsys-tarfile "$1" | tar -t`, "sh", file])
    : await must("tar", ["-tf", file]);
  return list.split("\n").map((path) => path.replace(/^\.?\//, ""));
}

/** Output of a command that succeeds. */
async function must(
  command: string,
  args: readonly string[],
  options: Parameters<typeof run>[2] = {},
): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, options);
  assert.equal(code, 0, `${command} ${args.join(" ")}: ${stderr}${stdout}`);
  return stdout;
}
