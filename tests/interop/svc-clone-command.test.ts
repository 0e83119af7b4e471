import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  git,
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  SVC_LAUNCHER,
  tempFolder,
  until,
  type CodeHost,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import { SCRIPT } from "./svc-seed-client-stand.ts";

describe("svc clone", { timeout: 300_000 }, () => {
  let codeHost: CodeHost;
  let svc: Svc;
  let folder: TempFolder;
  before(async () => {
    codeHost = await startCodeHost();
    await codeHost.addRepository("org", "r", { build: (dir) => repositories.linear(dir) });
    svc = await startSvc({ codeHost });
    folder = await tempFolder("svc-clone");
    await svc.addCachedRepository("org", "r");
    await git(["clone", "-q", "--bare", url(), at("fill")]);
    await until(async () => (await fetch(`${url()}.git/svc/seed`)).status === 200);
  });
  after(async () => {
    await svc?.stop();
    await codeHost?.stop();
    await folder?.remove();
  });

  const url = (): string => `${svc.url}/org/r`;
  const at = (name: string): string => join(folder.path, name);
  const env = gitEnvironment();
  const seedBytes = async (): Promise<number> => {
    const text = await (await fetch(svc.metricsUrl)).text();
    return Number(/^svc_cache_bytes_total\{source="seed"\} (\d+)/m.exec(text)?.[1] ?? 0);
  };
  const assertSeedUsed = async (work: () => Promise<string>): Promise<void> => {
    const earlier = await seedBytes();
    const cloned = await work();
    assert.equal(await git(["-C", cloned, "status", "--porcelain"]), "");
    assert.equal((await run("git", ["-C", cloned, "fsck", "--strict"])).stderr, "");
    assert.ok((await seedBytes()) > earlier);
  };

  it("clones by the seed, with the options of git clone", () =>
    assertSeedUsed(async () => {
      const made = await run(SVC_LAUNCHER, ["clone", "-b", "main", "--", url(), at("by-command")], { env });
      assert.equal(made.code, 0, made.stderr);
      assert.doesNotMatch(made.stderr, /without the seed/);
      return at("by-command");
    }));

  it("gives options that it does not know to git clone, with its exit code", async () => {
    const made = await run(SVC_LAUNCHER, ["clone", "--depth=1", "-c", "x.y=z", url(), at("shallow")], {
      env,
    });
    assert.equal(made.code, 0, made.stderr);
    assert.equal(await git(["-C", at("shallow"), "rev-list", "--count", "HEAD"]), "1");
    const missing = await run(SVC_LAUNCHER, ["clone", "-q", `${svc.url}/org/none`, at("none")], { env });
    assert.equal(missing.code, 128, missing.stderr);
  });

  it("has a help", async () => {
    const help = await run(SVC_LAUNCHER, ["clone", "--help"], { env });
    assert.match(help.stdout, /svc clone \[OPTIONS\] URL \[DIR\][^]*--into/);
  });

  it("fish completes its own options, and not those of other commands", async () => {
    const script = await run(SVC_LAUNCHER, ["completion", "fish"], { env });
    await writeFile(at("svc.fish"), script.stdout);
    const offers = async (line: string): Promise<string[]> => {
      const asked = `source ${at("svc.fish")}; complete -C ${JSON.stringify(line)}`;
      const { stdout } = await run("fish", ["--no-config", "-c", asked], { env });
      return stdout.split("\n").map((offer) => offer.split("\t", 1)[0] ?? "");
    };
    const [ofClone, ofOthers] = [await offers("svc clone --"), await offers("svc doctor --")];
    assert.deepEqual([ofClone.includes("--bare"), ofClone.includes("--config")], [true, false]);
    assert.ok(ofClone.includes("--help"));
    assert.ok(ofOthers.includes("--config"));
  });

  it("the service serves the script, which a shell takes from a pipe", () =>
    assertSeedUsed(async () => {
      const served = await fetch(`${svc.url}/static/svc-seed`);
      assert.match(served.headers.get("content-type") ?? "", /^text\/x-shellscript/);
      const script = await served.text();
      assert.equal(script, await readFile(SCRIPT, "utf8"));
      const made = await run("sh", ["-s", "--", url(), at("by-script")], { env, input: script });
      assert.equal(made.code, 0, made.stderr);
      return at("by-script");
    }));
});
