import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { git, gitEnvironment, repositories, run, SVC_LAUNCHER, until } from "@devplat/testkit";
import { startStand, type Stand } from "./svc-git-stand.ts";
import {
  SCRIPT,
  SHELLS,
  runSeedClient as seed,
  startFaultyRelay,
  type FaultyRelay,
} from "./svc-seed-client-stand.ts";
import { makeSeed } from "./svc-seed-stand.ts";

const PACK = /\.pack(?:$| )/;
const PARTS = 4;
/** The service sends so much of each part, and then nothing. */
const SENT = 3_000_000;

describe("svc-seed that is interrupted", { timeout: 600_000 }, () => {
  let stand: Stand;
  let relay: FaultyRelay;
  let packSize = 0;
  let folders = 0;
  const started: ChildProcess[] = [];
  before(async () => {
    stand = await startStand({ listed: ["large"] });
    await stand.codeHost.addRepository("org", "large", {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 10, bytes: 4_000_000 }),
    });
    packSize = (await makeSeed(stand, "org/large")).pack.size;
    relay = await startFaultyRelay(stand.url);
  });
  after(async () => {
    relay?.stop();
    await stand?.stop();
  });
  afterEach(() => {
    relay.fault = () => undefined;
    relay.asked.length = 0;
    for (const child of started.splice(0)) killGroup(child, "SIGKILL");
  });

  const newFolder = (): string => stand.folder(`interrupted-${folders++}`);
  const url = (): string => `${relay.url}/org/large`;
  const packRanges = (): number[] =>
    relay.asked.filter((line) => PACK.test(line)).map((line) => Number(/bytes=(\d+)-/.exec(line)?.[1] ?? 0));
  /** Starts a clone in a process group of its own. @returns once each part of the pack has as much as it gets */
  const startStalled = async (
    folder: string,
    [program, ...args]: readonly [string, ...string[]],
  ): Promise<ChildProcess> => {
    relay.fault = (path) => (PACK.test(path) ? { stallAfter: SENT } : undefined);
    const child = spawn(program, [...args, url(), folder], {
      detached: true,
      stdio: "ignore",
      env: gitEnvironment(),
    });
    started.push(child);
    await until(
      async () => (await bytesOfParts(folder)).filter((bytes) => bytes > SENT - 100_000).length === PARTS,
    );
    return child;
  };
  const assertWhole = async (folder: string): Promise<void> => {
    assert.equal((await run("git", ["-C", folder, "fsck", "--full", "--strict"])).stderr, "");
    assert.equal(await git(["-C", folder, "status", "--porcelain"]), "");
  };
  /** A second run brings what the first one has not, and no more. */
  const assertGoesOn = async (folder: string): Promise<void> => {
    relay.fault = () => undefined;
    relay.asked.length = 0;
    const { code, stderr } = await seed([url(), folder]);
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /without the seed/);
    const step = Math.ceil(packSize / PARTS);
    assert.deepEqual(
      packRanges().map((first) => first % step > SENT - 100_000 && first % step <= SENT),
      Array(PARTS).fill(true),
      packRanges().join(),
    );
    await assertWhole(folder);
  };

  for (const [name, ...command] of [
    ...SHELLS.map(([shell, program, ...args]) => [shell, program, ...args, SCRIPT] as const),
    ["svc clone", SVC_LAUNCHER, "clone"] as const,
  ]) {
    for (const [signal, status, toGroup] of [
      ["SIGINT", 130, true],
      ["SIGTERM", 143, false],
      ["SIGHUP", 129, false],
    ] as const) {
      it(`${name}: ${signal} leaves no process, and the next run goes on in each part`, async () => {
        const folder = newFolder();
        const child = await startStalled(folder, command);
        const ended = once(child, "exit");
        if (toGroup) killGroup(child, signal);
        else child.kill(signal);
        assert.deepEqual(await ended, [status, null]);
        // The system may not have removed the last entry yet.
        await until(() => !isGroupAlive(child));
        await assertGoesOn(folder);
      });
    }
  }

  for (const [name, program, ...args] of SHELLS) {
    it(`${name}: SIGTERM does not wait for the SHA-256 of a large file`, async () => {
      // In place of the program that sums a file so large that this takes minutes.
      const folder = newFolder();
      const bin = newFolder();
      const mark = join(bin, "mark");
      await mkdir(bin);
      await writeFile(join(bin, "openssl"), `#!/bin/sh\n: >'${mark}'\nexec sleep 300\n`, { mode: 0o755 });
      const env = gitEnvironment({ PATH: `${bin}:${process.env["PATH"]}` });
      const child = spawn(program, [...args, SCRIPT, url(), folder], {
        detached: true,
        stdio: "ignore",
        env,
      });
      started.push(child);
      await until(() => existsSync(mark));
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      assert.deepEqual(await ended, [143, null]);
      await until(() => !isGroupAlive(child));
      relay.asked.length = 0;
      const { code, stderr } = await seed([url(), folder]);
      assert.equal(code, 0, stderr);
      assert.deepEqual(packRanges(), [], "nothing is downloaded again");
      await assertWhole(folder);
    });
  }

  it("the next run goes on in each part after SIGKILL of all processes", async () => {
    const folder = newFolder();
    const child = await startStalled(folder, ["sh", SCRIPT]);
    const ended = once(child, "exit");
    killGroup(child, "SIGKILL");
    await ended;
    await assertGoesOn(folder);
  });

  it("downloads that outlive SIGKILL of the script do not disturb the next run", async () => {
    const folder = newFolder();
    const child = await startStalled(folder, ["sh", SCRIPT]);
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    assert.equal(isGroupAlive(child), true);
    await assertGoesOn(folder);
  });

  it("of two runs in one folder the later one goes on, and the other ends", async () => {
    const folder = newFolder();
    const child = await startStalled(folder, ["sh", SCRIPT]);
    relay.fault = (path) => (PACK.test(path) ? { status: 503 } : undefined);
    const later = spawn("sh", [SCRIPT, url(), folder], {
      detached: true,
      stdio: "ignore",
      env: gitEnvironment(),
    });
    started.push(later);
    await until(() => relay.asked.filter((line) => PACK.test(line)).length > PARTS);
    const [ended, laterEnded] = [once(child, "exit"), once(later, "exit")];
    relay.fault = () => undefined;
    relay.endStalled();
    assert.deepEqual(await ended, [2, null]);
    assert.deepEqual(await laterEnded, [0, null]);
    await assertWhole(folder);
  });
});

function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  try {
    return pid !== undefined && process.kill(-pid, signal);
  } catch {
    return false;
  }
}

const isGroupAlive = (child: ChildProcess): boolean => killGroup(child, 0);

async function bytesOfParts(folder: string): Promise<number[]> {
  const work = join(folder, ".git", "svc-seed");
  const names = (await readdir(work).catch(() => [])).filter((name) => /^pack\..*\d$/.test(name));
  return Promise.all(
    names.map(async (name) => (await stat(join(work, name)).catch(() => ({ size: 0 }))).size),
  );
}
