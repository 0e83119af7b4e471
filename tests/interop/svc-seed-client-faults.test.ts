import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { git, gitEnvironment, gitSettings, repositories, run, until } from "@devplat/testkit";
import { basic, startStand, type Stand } from "./svc-git-stand.ts";
import {
  SCRIPT,
  runSeedClient as seed,
  startFaultyRelay,
  type FaultyRelay,
  type ResponseFault,
} from "./svc-seed-client-stand.ts";
import { makeSeed, type Manifest } from "./svc-seed-stand.ts";

const PACK = /\.pack(?:$| )/;
/** One request for the pack, so that a cut has a place. */
const ONE_PART = { SVC_SEED_PARTS: "1" };
const PASSWORD = "owner-token";

describe("svc-seed when something goes wrong", { timeout: 900_000 }, () => {
  let stand: Stand;
  let relay: FaultyRelay;
  let large: Manifest;
  let folders = 0;
  before(async () => {
    stand = await startStand({ listed: ["r", "large", "private"] });
    await stand.codeHost.addRepository("org", "r", { build: (dir) => repositories.linear(dir) });
    await stand.codeHost.addRepository("org", "none", { build: (dir) => repositories.linear(dir) });
    stand.codeHost.addUser("owner", PASSWORD);
    await stand.codeHost.addRepository("org", "private", { private: true });
    await stand.codeHost.addRepository("org", "large", {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 10, bytes: 4_000_000 }),
    });
    await makeSeed(stand, "org/r");
    await makeSeed(stand, "org/private", { Authorization: basic(PASSWORD) });
    large = await makeSeed(stand, "org/large");
    relay = await startFaultyRelay(stand.url);
  });
  after(async () => {
    relay?.stop();
    await stand?.stop();
  });
  afterEach(() => {
    relay.fault = () => undefined;
    relay.asked.length = 0;
  });

  const newFolder = (): string => stand.folder(`faults-${folders++}`);
  const url = (name = "r"): string => `${relay.url}/org/${name}`;
  /** A complete clone is there, and nothing of the seed. */
  const assertWhole = async (folder: string): Promise<void> => {
    const fsck = await run("git", ["-C", folder, "fsck", "--full", "--strict"]);
    assert.deepEqual([fsck.code, fsck.stderr], [0, ""]);
    assert.equal(await git(["-C", folder, "status", "--porcelain"]), "");
    assert.equal(await git(["-C", folder, "for-each-ref", "refs/svc-seed"]), "");
    assert.deepEqual(
      (await readdir(join(folder, ".git"))).filter((name) => name.startsWith("svc-seed")),
      [],
    );
  };
  const packRequests = (): string[] => relay.asked.filter((line) => PACK.test(line));
  /** The fault of the first request for a pack. */
  const onPack = (fault: ResponseFault): ((path: string) => ResponseFault | undefined) => {
    let isDone = false;
    return (path) => {
      if (isDone || !PACK.test(path)) return undefined;
      isDone = true;
      return fault;
    };
  };

  it("a large pack comes in parts", async () => {
    const folder = newFolder();
    const { code, stderr } = await seed([url("large"), folder]);
    assert.equal(code, 0, stderr);
    assert.equal(packRequests().length, 4, packRequests().join("\n"));
    await assertWhole(folder);
  });

  it("a download that is cut at its half goes on from there", async () => {
    relay.fault = onPack({ cutAfter: large.pack.size >> 1 });
    const folder = newFolder();
    const { code, stderr } = await seed([url("large"), folder], { env: ONE_PART });
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /without the seed/);
    const [, second = ""] = packRequests();
    const from = Number(/bytes=(\d+)-/.exec(second)?.[1]);
    assert.ok(from > 0 && from <= large.pack.size >> 1, second);
    await assertWhole(folder);
  });

  it("a run that is killed is continued by the next one", async () => {
    const cut = onPack({ cutAfter: large.pack.size >> 1 });
    relay.fault = (path) => cut(path) ?? (PACK.test(path) ? { status: 503 } : undefined);
    const folder = newFolder();
    const args = [SCRIPT, url("large"), folder];
    const child = spawn("sh", args, {
      detached: true,
      stdio: "ignore",
      env: { ...gitEnvironment(), ...ONE_PART },
    });
    const ended = once(child, "exit");
    await until(() => packRequests().length > 1);
    process.kill(-(child.pid ?? 0), "SIGKILL");
    await ended;
    relay.fault = () => undefined;
    relay.asked.length = 0;
    const { code, stderr } = await seed([url("large"), folder], { env: ONE_PART });
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /without the seed/);
    assert.deepEqual(
      packRequests().map((line) => / bytes=0-/.test(line)),
      [false],
    );
    await assertWhole(folder);
  });

  it("an interrupted run leaves no download behind, and no file of the user is lost", async () => {
    const cut = onPack({ cutAfter: large.pack.size >> 1 });
    relay.fault = (path) => cut(path) ?? (PACK.test(path) ? { status: 503 } : undefined);
    const folder = newFolder();
    const child = spawn("sh", [SCRIPT, url("large"), folder], {
      detached: true,
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...gitEnvironment(), ...ONE_PART },
    });
    const ended = once(child, "exit");
    const said = text(child.stderr);
    await until(() => packRequests().length > 1);
    process.kill(-(child.pid ?? 0), "SIGINT");
    assert.deepEqual(await ended, [130, null]);
    assert.match(await said, /interrupted\. Run the same command again to go on/);
    const requests = packRequests().length;
    await sleep(3000);
    assert.equal(packRequests().length, requests, "a download went on");
    await writeFile(join(folder, "mine"), "1");
    const { code, stderr } = await seed([url("large"), folder]);
    assert.equal(code, 128);
    assert.match(stderr, /already exists and is not an empty directory/);
    assert.equal(await readFile(join(folder, "mine"), "utf8"), "1");
  });

  for (const [name, fault, reason] of [
    ["a damaged pack", { flipAt: 1000 }, /damaged: its SHA-256/],
    ["a seed that was withdrawn", { status: 410 }, /the seed was withdrawn/],
    ["a lost permission", { status: 404 }, /does not give the seed any more/],
    ["a redirect", { status: 302, headers: { Location: "http://127.0.0.1:1/" } }, /answered with 302/],
  ] as const) {
    it(`${name} means a plain clone, and one line tells why`, async () => {
      relay.fault = (path) => (PACK.test(path) ? fault : undefined);
      const folder = newFolder();
      const { code, stderr } = await seed([url(), folder]);
      assert.equal(code, 0, stderr);
      assert.match(stderr, reason);
      assert.equal(stderr.match(/without the seed/g)?.length, 1, stderr);
      await assertWhole(folder);
    });
  }

  for (const [name, fault, reason] of [
    [
      "a size with 30 digits",
      { change: (body: string) => body.replace(/"size":\d+/, `"size":1${"0".repeat(29)}`) },
      /cannot be read/,
    ],
    ["a size of 0", { change: (body: string) => body.replace(/"size":\d+/, '"size":0') }, /cannot be read/],
    ["a description without an end", { isEndless: true }, /did not come to its end/],
  ] as const) {
    it(`${name} means a plain clone`, async () => {
      relay.fault = (path) => (path.endsWith("/svc/seed") ? fault : undefined);
      const folder = newFolder();
      const { code, stderr } = await seed(["-q", url(), folder]);
      assert.equal(code, 0, stderr);
      assert.match(stderr, reason);
      assert.match(stderr, /^svc-seed: .*: cloning without the seed\n$/);
      await assertWhole(folder);
    });
  }

  it("a response that sends more than was asked for is ended", async () => {
    relay.fault = (path) => (path.endsWith(".idx") ? { isEndless: true } : undefined);
    relay.surplus = 0;
    const folder = newFolder();
    const { code, stderr } = await seed([url(), folder]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /sent other bytes than it was asked for: cloning without the seed/);
    assert.ok(relay.surplus < 20_000_000, `${relay.surplus} bytes`);
    await assertWhole(folder);
  });

  for (const args of [
    ["URL", ""],
    ["-b", "", "URL", "d"],
  ]) {
    it(`an empty argument is git's to refuse: ${args.join(" ")}`, async () => {
      const cwd = newFolder();
      await mkdir(cwd);
      const { code, stderr } = await seed(
        args.map((arg) => (arg === "URL" ? url() : arg)),
        { cwd },
      );
      assert.equal(code, 128, stderr);
      assert.deepEqual(await readdir(cwd), []);
    });
  }

  for (const [name, wantsSeed] of [
    ["-x", true],
    ["a\nb", false],
  ] as const) {
    it(`clones into ${JSON.stringify(name)} and makes nothing next to it`, async () => {
      const cwd = newFolder();
      await mkdir(cwd);
      const { code, stderr } = await seed(["-q", "--", url(), name], { cwd });
      assert.deepEqual([code, stderr], [0, ""]);
      assert.deepEqual(await readdir(cwd), [name]);
      assert.equal(
        relay.asked.some((path) => PACK.test(path)),
        wantsSeed,
      );
      await assertWhole(join(cwd, name));
    });
  }

  it("a repository without a seed is cloned plainly", async () => {
    const folder = newFolder();
    const { code, stderr } = await seed([url("none"), folder]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /is not in the list of cached repositories.*: cloning without the seed/);
    await assertWhole(folder);
  });

  it("a refusal is told in the words of the service, if it gives any", async () => {
    const detail = '{"title":"x","detail":"Seeds are \\u001b switched off"}';
    for (const [fault, reason] of [
      [
        { status: 404, body: '{"title":"x","detail":"Seeds are switched off"}' },
        /: Seeds are switched off: cloning/,
      ],
      [{ status: 403, body: '{"detail": "The token lacks a scope"}' }, /: The token lacks a scope: cloning/],
      [{ status: 404, body: "<html>" }, /this server has no seed of this repository: cloning/],
      [{ status: 404, body: detail }, /this server has no seed of this repository: cloning/],
      [{ status: 404, headers: { "retry-after": "60" } }, /there is no seed of this repository yet: cloning/],
      [{ status: 500, body: "" }, /the service answered with 500: cloning/],
    ] as const) {
      relay.fault = (path) => (path.endsWith("/svc/seed") ? fault : undefined);
      const folder = newFolder();
      const { code, stderr } = await seed(["-q", url(), folder]);
      assert.equal(code, 0, stderr);
      assert.match(stderr, reason);
      await assertWhole(folder);
    }
  });

  it("the exit status is the plain clone's [svc 12.10]", async () => {
    const { code, stderr } = await seed([url("missing"), newFolder()]);
    assert.equal(code, 128, stderr);
  });

  it("an option of git clone that it does not know goes to git clone unchanged", async () => {
    const folder = newFolder();
    const { code, stderr } = await seed(["--depth", "1", "-c", "a.b=c d", url(), folder]);
    assert.equal(code, 0, stderr);
    assert.equal(await git(["-C", folder, "config", "a.b"]), "c d");
    assert.equal(await git(["-C", folder, "rev-list", "--count", "HEAD"]), "1");
    assert.deepEqual(
      relay.asked.filter((path) => path.includes("/svc/")),
      [],
    );
  });

  it("a folder with files is refused as by git clone, and stays as it is", async () => {
    const folder = newFolder();
    await git(["init", "-q", folder]);
    await writeFile(join(folder, "mine"), "1");
    const { code, stderr } = await seed([url(), folder]);
    assert.equal(code, 128);
    assert.match(stderr, /already exists and is not an empty directory/);
    assert.equal(await readFile(join(folder, "mine"), "utf8"), "1");
  });

  describe("a private repository", () => {
    const withHelper = (script: string): NodeJS.ProcessEnv =>
      gitSettings({ "credential.helper": `!f() { echo "$1" >>"$CALLS"; ${script}; }; f` });
    const answer = (password: string): string =>
      `test "$1" != get || printf 'username=x\\npassword=${password}\\n'`;

    it("the credential comes from git's helpers, which hear that it was right", async () => {
      const [folder, calls] = [newFolder(), newFolder()];
      const { code, stderr } = await seed([url("private"), folder], {
        env: { ...withHelper(answer(PASSWORD)), CALLS: calls },
      });
      assert.equal(code, 0, stderr);
      assert.doesNotMatch(stderr, /without the seed/);
      assert.equal(await readFile(calls, "utf8"), "get\nstore\n");
      await assertWhole(folder);
    });

    it("a wrong credential is rejected, and git's own error is the answer", async () => {
      const calls = newFolder();
      const { code, stderr } = await seed([url("private"), newFolder()], {
        env: { ...withHelper(answer("made-up")), CALLS: calls },
      });
      assert.equal(code, 128);
      assert.match(stderr, /Authentication failed/);
      assert.equal(await readFile(calls, "utf8"), "get\nerase\n");
    });

    it("a person without a helper is asked once", async () => {
      const [folder, asked, program] = [newFolder(), newFolder(), newFolder()];
      await writeFile(
        program,
        `#!/bin/sh\necho "$1" >>"${asked}"\ncase $1 in User*) echo x ;; *) echo ${PASSWORD} ;; esac\n`,
        { mode: 0o755 },
      );
      const { code, stderr } = await seed([url("private"), folder], { env: { GIT_ASKPASS: program } });
      assert.equal(code, 0, stderr);
      assert.doesNotMatch(stderr, /without the seed/);
      assert.equal((await readFile(asked, "utf8")).trim().split("\n").length, 2);
      await assertWhole(folder);
    });

    it("a credential in ~/.netrc is used, and nobody is asked", async () => {
      const [folder, home, calls] = [newFolder(), newFolder(), newFolder()];
      await mkdir(home);
      await writeFile(calls, "");
      await writeFile(join(home, ".netrc"), `machine 127.0.0.1 login x password ${PASSWORD}\n`);
      const { code, stderr } = await seed(["-q", url("private"), folder], {
        env: { ...withHelper("exit 1"), CALLS: calls, HOME: home },
      });
      assert.deepEqual([code, stderr], [0, ""]);
      assert.equal(await readFile(calls, "utf8"), "");
      assert.ok(relay.asked.some((path) => PACK.test(path)));
      await assertWhole(folder);
    });

    it("the password of the URL is not kept before a check-out step", async () => {
      const folder = newFolder();
      const withUser = url("private").replace("://", `://x:${PASSWORD}@`);
      const { code, stderr } = await seed(["-q", "--into", folder, withUser]);
      assert.deepEqual([code, stderr], [0, ""]);
      assert.equal(await git(["-C", folder, "config", "remote.origin.url"]), url("private"));
    });

    it("a credential in the URL is decoded and used, and is in no argument", async () => {
      const folder = newFolder();
      const withUser = url("private").replace("://", "://x:%6Fwner-token@");
      const { code, stderr } = await seed([withUser, folder], { shell: ["sh", "-x"] });
      assert.equal(code, 0, stderr);
      assert.doesNotMatch(stderr, /without the seed/);
      assert.doesNotMatch(
        stderr
          .split("\n")
          .filter((line) => /^\++ curl/.test(line))
          .join("\n"),
        /owner-token/,
      );
      assert.equal(await git(["-C", folder, "config", "remote.origin.url"]), withUser);
    });
  });
});
