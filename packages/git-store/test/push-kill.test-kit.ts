import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { git, run } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { buildRepository, temporaryFolder } from "./git.test-kit.ts";
import { Repository } from "../src/repository/repository.ts";
import { tryGit } from "./push.test-kit.ts";

const CHILD = join(import.meta.dirname, "push-kill-child.ts");
const BRANCHES = ["main", "side/one", "side/two"];
/** Kills after which the packs of the repository are merged, so that it stays small. */
const REPACK_EACH = 20;

/** Results of the pushes during which the server was killed. */
export interface KillCounts {
  kills: number;
  acknowledged: number;
  lost: number;
}

/**
 * Kills (-9) a server of pushes at random moments. After each kill stock git must find the repository clean, each ref must have its old or
 * its new value, and pushes that were acknowledged must be there. The next process removes what is left.
 */
export async function killPushes(
  seed: number,
  isEnough: (counts: Readonly<KillCounts>) => boolean,
): Promise<KillCounts> {
  using folder = temporaryFolder();
  const random = randomFrom(seed);
  const path = buildRepository(folder.path);
  const work = join(folder.path, "work");
  await git(["clone", "-q", path, work]);
  const counts = { kills: 0, acknowledged: 0, lost: 0 };
  const refsNow = async (): Promise<Map<string, string>> => {
    const text = await git([
      "-C",
      path,
      "for-each-ref",
      "--format=%(refname:short) %(objectname)",
      "refs/heads",
    ]);
    return new Map(text.split("\n").map((line) => line.split(" ") as [string, string]));
  };
  let earlier = await refsNow();
  while (!isEnough(counts)) {
    const child = spawn(process.execPath, [CHILD, path], { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const url = `http://127.0.0.1:${line.toString().trim()}/demo.git`;
    // The first push warms the server, so that the kill meets the work for a push.
    for (let turn = 0; turn < 2; turn++) {
      writeFileSync(join(work, "file"), `${counts.kills} ${turn} ${random()}\n`.repeat(1 + random() * 3000));
      await git(["-C", work, "add", "file"]);
      await git(["-C", work, "commit", "-qm", `${counts.kills} ${turn}`]);
      const tip = await git(["-C", work, "rev-parse", "HEAD"]);
      const isDeleted = random() < 0.3 && earlier.has("side/two");
      const names = BRANCHES.map((name) =>
        isDeleted && name === "side/two" ? `:${name}` : `+HEAD:refs/heads/${name}`,
      );
      const pushing = tryGit(["-C", work, "push", ...(random() < 0.5 ? ["--atomic"] : []), url, ...names]);
      if (turn === 1) {
        await sleep(random() * 250);
        child.kill("SIGKILL");
        await exited;
        counts.kills++;
      }
      const { code } = await pushing;
      const now = await refsNow();
      const wanted = (name: string): string | undefined =>
        isDeleted && name === "side/two" ? undefined : tip;
      for (const name of BRANCHES) {
        const allowed = code === 0 ? [wanted(name)] : [earlier.get(name), wanted(name)];
        assert.ok(
          allowed.includes(now.get(name)),
          `${name} is at ${now.get(name)}, not ${allowed.join(" or ")}`,
        );
      }
      if (turn === 0) assert.equal(code, 0);
      else if (code === 0) counts.acknowledged++;
      else counts.lost++;
      earlier = now;
    }
    const fsck = await run("git", ["-C", path, "fsck", "--full", "--strict", "--no-dangling"]);
    assert.equal(fsck.code, 0, fsck.stderr);
    const repository = await Repository.open(path);
    await repository.removeLeftovers();
    repository.close();
    const left = readdirSync(path, { recursive: true, encoding: "utf8" });
    assert.deepEqual(
      left.filter((name) => /tmp_|\.lock$|\.keep$/u.test(name)),
      [],
    );
    if (counts.kills % REPACK_EACH === 0) await git(["-C", path, "repack", "-adq"]);
  }
  return counts;
}
