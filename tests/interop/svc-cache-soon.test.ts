import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import {
  git,
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  tempFolder,
  until,
  type CodeHost,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import { command, contentOf } from "./svc-git-stand.ts";

const SERVICE = "service-token";
/**
 * Milliseconds in which a mirror is filled or warmed on a loaded machine, though its repository is never without
 * requests. An earlier version waited until the repository was idle, for a maximum of 60 s.
 */
const SOON_MS = 45_000;

describe("a service with default settings whose repository is never idle", { timeout: 480_000 }, () => {
  let codeHost: CodeHost;
  let svc: Svc;
  let folder: TempFolder;
  let name: string;
  let path: string;
  let count = 0;
  before(async () => {
    codeHost = await startCodeHost();
    codeHost.addUser("svc", SERVICE);
    folder = await tempFolder("svc-soon");
    const env = { SVC_CACHE_REPACK_IDLE_SECONDS: undefined, SVC_CACHE_SERVICE_TOKEN: SERVICE };
    svc = await startSvc({ codeHost, env });
  });
  after(async () => {
    await svc.stop();
    await codeHost.stop();
    await folder.remove();
  });
  beforeEach(async () => {
    name = `r${++count}`;
    ({ path } = await codeHost.addRepository("org", name, {
      build: (dir) => repositories.linear(dir, { commits: 12 }),
    }));
    await svc.addCachedRepository("org", name);
    codeHost.resetCalls();
  });

  const url = (): string => `${svc.url}/org/${name}`;
  const at = (part: string): string => join(folder.path, `${name}-${part}`);
  const stock = async (...args: string[]): Promise<void> => {
    const done = await run("git", args, { env: gitEnvironment() });
    assert.equal(done.code, 0, done.stderr);
  };
  const upstream = (): number => codeHost.calls.filter((call) => call.command === "fetch").length;
  const post = async (...args: string[]): Promise<{ cache: string | null; body: string }> => {
    const answer = await fetch(`${url()}/git-upload-pack`, {
      method: "POST",
      headers: { "content-type": "application/x-git-upload-pack-request", "git-protocol": "version=2" },
      body: new Uint8Array(command("fetch", args)),
    });
    return {
      cache: answer.headers.get("x-svc-cache"),
      body: Buffer.from(await answer.arrayBuffer()).toString("latin1"),
    };
  };
  const oidOf = (revision: string): Promise<string> => git(["-C", path, "rev-parse", revision]);
  /** Sends different shallow requests one after the other until one comes from the mirror. */
  const assertHitSoon = async (below: number): Promise<void> => {
    const end = performance.now() + SOON_MS;
    for (let asked = 1; ; asked++) {
      assert.ok(performance.now() < end, `no request was a hit within ${SOON_MS} ms`);
      const oid = await oidOf(`main~${below + (asked % 2)}`);
      const { cache, body } = await post("no-progress", `deepen ${asked + 1}`, `want ${oid}`, "done");
      assert.match(body, /PACK/);
      if (cache === "hit") return;
    }
  };

  it("after one full clone, different requests cost the code host nothing [svc 2.12]", async () => {
    await stock("clone", "-q", "--mirror", url(), at("first"));
    await assertHitSoon(0);
    const asked = upstream();
    await stock("clone", "-q", "--depth=1", url(), at("shallow"));
    await stock("clone", "-q", "--bare", "--filter=blob:none", url(), at("partial"));
    await git(["clone", "-q", "--mirror", path, at("older")]);
    await git(["-C", at("older"), "update-ref", "refs/heads/main", "main~5"]);
    await git(["-C", at("older"), "reflog", "expire", "--expire=now", "--all"]);
    await git(["-C", at("older"), "gc", "-q", "--prune=now"]);
    await stock("-C", at("older"), "fetch", "-q", url(), "+refs/*:refs/*");
    assert.equal(upstream(), asked);
    assert.equal(await contentOf(at("older")), await contentOf(path));
    await git(["-C", join(svc.dataDir, "cache", "org", `${name}.git`), "fsck", "--full", "--strict"]);
  });

  it("a shallow first check-out fills the mirror, and a different shallow one is a hit [svc 2.12]", async () => {
    await stock("init", "-q", at("shallow"));
    await stock("-C", at("shallow"), "fetch", "-q", "--depth=1", url(), await oidOf("main"));
    await assertHitSoon(2);
  });

  it("a push that an ls-refs shows is fetched, and the next clone costs nothing [svc 4.2]", async () => {
    await stock("clone", "-q", "--mirror", url(), at("first"));
    await codeHost.push("org", name, { commits: 2 });
    const tip = await oidOf("main");
    const store = join(svc.dataDir, "cache", "org", `${name}.git`);
    const end = performance.now() + SOON_MS;
    const warmed = async (): Promise<boolean> =>
      (await run("git", ["-C", store, "cat-file", "-e", tip], { env: gitEnvironment() })).code === 0;
    // Nobody fetches: each ls-refs only shows the change.
    while (!(await warmed())) {
      assert.ok(performance.now() < end, "the push was not fetched ahead");
      await stock("ls-remote", "-q", url());
    }
    await until(async () => (await git(["-C", store, "rev-parse", "main"])) === tip);
    const asked = upstream();
    assert.equal(asked, 2);
    await stock("clone", "-q", "--mirror", url(), at("second"));
    assert.equal(upstream(), asked);
    assert.equal(await contentOf(at("second")), await contentOf(path));
  });

  it("clients at different commits right after the first clone cost one delta [svc 2.15]", async () => {
    const runners = [1, 3, 5, 7, 9];
    for (const behind of runners) {
      await stock("init", "-q", "--bare", at(`runner-${behind}`));
      const branch = `${await oidOf(`main~${behind}`)}:refs/heads/main`;
      await stock("-C", at(`runner-${behind}`), "fetch", "-q", path, branch);
    }
    await stock("clone", "-q", "--mirror", url(), at("first"));
    const store = join(svc.dataDir, "cache", "org", `${name}.git`);
    const first = await oidOf("main");
    const isFilled = async (): Promise<boolean> =>
      (await run("git", ["-C", store, "cat-file", "-e", first], { env: gitEnvironment() })).code === 0;
    await until(isFilled);
    await codeHost.push("org", name, { commits: 1 });
    await Promise.all(
      runners.map((behind) =>
        stock("-C", at(`runner-${behind}`), "fetch", "-q", url(), "main:refs/heads/main"),
      ),
    );
    const tip = await oidOf("main");
    for (const behind of runners) {
      assert.equal(await git(["-C", at(`runner-${behind}`), "rev-parse", "main"]), tip);
      await git(["-C", at(`runner-${behind}`), "fsck", "--full", "--strict"]);
    }
    assert.equal(upstream(), 2);
  });
});
