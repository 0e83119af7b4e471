import assert from "node:assert/strict";
import { truncate, writeFile, appendFile, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, beforeEach, afterEach, before, describe, it } from "node:test";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";
import { sign, sumsOf, sumsText } from "./sums.ts";

const SCRIPT = join(import.meta.dirname, "verify-release.sh");
const FILES = { "svc-1.tar.gz": "content of svc", "agent-1.tar.gz": "content of agent" };

describe("verify-release.sh", () => {
  let keys: TempFolder;
  let folder: TempFolder;
  let signers: string;
  const key = (name: string): string => join(keys.path, name);
  const verify = async (...args: string[]) =>
    run("sh", [SCRIPT, "--signers", signers, ...args], { cwd: folder.path });
  const at = (name: string): string => join(folder.path, name);
  const assertRefused = async (reason: RegExp, ...args: string[]): Promise<void> => {
    const { code, stderr } = await verify(...args);
    assert.equal(code, 1);
    assert.match(stderr, reason);
  };

  before(async () => {
    keys = await tempFolder("release-keys");
    for (const name of ["key", "other"]) {
      const made = await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", key(name)]);
      assert.equal(made.code, 0, made.stderr);
    }
    signers = key("signers");
    await writeFile(signers, `release ${await readFile(`${key("key")}.pub`, "utf8")}`);
  });
  beforeEach(async () => {
    folder = await tempFolder("release-files");
    for (const [name, content] of Object.entries(FILES)) await writeFile(at(name), content);
    await writeFile(at("SHA256SUMS"), sumsText(await sumsOf(folder.path, Object.keys(FILES))));
    await sign(at("SHA256SUMS"), key("key"));
  });
  afterEach(() => folder.remove());
  after(() => keys.remove());

  it("accepts files as they were signed, all of them or the named ones", async () => {
    const all = await verify();
    assert.deepEqual([all.code, all.stdout], [0, "agent-1.tar.gz: good\nsvc-1.tar.gz: good\n"]);
    assert.equal((await verify("svc-1.tar.gz")).stdout, "svc-1.tar.gz: good\n");
    await rm(at("agent-1.tar.gz"));
    assert.equal((await verify()).stdout, "svc-1.tar.gz: good\n");
  });

  it("refuses a truncated file, and one that was changed", async () => {
    await truncate(at("svc-1.tar.gz"), 5);
    await assertRefused(
      /svc-1\.tar\.gz is broken: the download was cut off, or the file was changed.*Download it again/,
    );
    await writeFile(at("svc-1.tar.gz"), "content of sVc");
    await assertRefused(/svc-1\.tar\.gz is broken/, "svc-1.tar.gz");
  });

  it("refuses sums that were changed after the signature", async () => {
    await writeFile(at("svc-1.tar.gz"), "another content");
    await writeFile(at("SHA256SUMS"), sumsText(await sumsOf(folder.path, Object.keys(FILES))));
    await assertRefused(/the signature of SHA256SUMS is wrong.*Do not use these files/);
  });

  it("refuses the signature of another key, for another purpose, and a broken one", async () => {
    await sign(at("SHA256SUMS"), key("other"));
    await assertRefused(/signature of SHA256SUMS is wrong/);
    await rm(at("SHA256SUMS.sig"));
    await run("ssh-keygen", ["-Y", "sign", "-n", "git", "-f", key("key"), at("SHA256SUMS")]);
    await assertRefused(/signature of SHA256SUMS is wrong/);
    await sign(at("SHA256SUMS"), key("key"));
    await truncate(at("SHA256SUMS.sig"), 100);
    await assertRefused(/signature of SHA256SUMS is wrong/);
  });

  it("refuses a release without a signature, unless that is asked for", async () => {
    await rm(at("SHA256SUMS.sig"));
    await assertRefused(/no SHA256SUMS\.sig/);
    const unsigned = await run("sh", [SCRIPT, "--no-signature"], { cwd: folder.path });
    assert.equal(unsigned.code, 0, unsigned.stderr);
    const unnamed = await run("sh", [SCRIPT], { cwd: folder.path });
    assert.match(unnamed.stderr, /--signers FILE/);
  });

  it("refuses a file that is not part of the release", async () => {
    await appendFile(at("more"), "text");
    await assertRefused(/more is not part of this release/, "more");
    await assertRefused(/there is no file less/, "less");
  });
});
