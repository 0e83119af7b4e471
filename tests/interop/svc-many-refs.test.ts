import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  History,
  git,
  startCodeHost,
  startSvc,
  tempFolder,
  until,
  type CodeHost,
  type Mark,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import { command } from "./svc-git-stand.ts";

/** A third of the size for which the budget is set, because the tests build and clone it; the budget is the same. */
const BRANCHES = 20_000;
const FETCHES = 40;
/** Budgets of the resident set in MB (10^6 bytes): under the load, and within a minute after it. */
const LOAD_MB = 400;
const IDLE_MB = 250;
const POST = {
  "content-type": "application/x-git-upload-pack-request",
  "git-protocol": "version=2",
};

/** One commit for each branch: a line of history with a side branch every now and then. */
async function build(dir: string): Promise<void> {
  const history = new History();
  const commits: Mark[] = [];
  for (let n = 0; n < BRANCHES; n++) {
    const parent = commits.at(n % 20 === 0 ? -500 : -1) ?? commits[0];
    const commit = history.commit({
      ref: `refs/heads/team-${n % 97}/branch-${n}`,
      parents: parent === undefined ? [] : [parent],
      files: { [`folder-${n % 50}/file-${n % 1000}`]: `content ${n}\n` },
    });
    commits.push(commit);
  }
  history.commit({ ref: "refs/heads/main", parents: commits.slice(-1), files: {} });
  await git(["init", "-q", "--bare", "-b", "main", dir]);
  await history.import(dir);
  await git(["-C", dir, "pack-refs", "--all"]);
}

describe("a repository with very many branches", { timeout: 480_000 }, () => {
  let codeHost: CodeHost;
  let svc: Svc;
  let folder: TempFolder;
  let path: string;
  before(async () => {
    // Without want-ref: a clone names each branch's commit.
    codeHost = await startCodeHost({ refInWant: false });
    folder = await tempFolder("svc-many-refs");
    ({ path } = await codeHost.addRepository("org", "many", { build }));
    // So short that the service asks for HEAD between the responses with all branches.
    svc = await startSvc({ codeHost, env: { SVC_CACHE_GRANT_SECONDS: "1" } });
    await svc.addCachedRepository("org", "many");
  });
  after(async () => {
    await svc.stop();
    await codeHost.stop();
    await folder.remove();
  });

  /** The resident set now, and its peak since the start. */
  const megabytes = (field: "VmRSS" | "VmHWM"): number => {
    const status = readFileSync(`/proc/${svc.pid}/status`, "utf8");
    return (Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "mu").exec(status)?.[1]) * 1024) / 1e6;
  };

  const post = async (body: Buffer): Promise<{ readonly status: number; readonly bytes: number }> => {
    const answer = await fetch(`${svc.url}/org/many.git/git-upload-pack`, {
      method: "POST",
      headers: POST,
      body: new Uint8Array(body),
    });
    let bytes = 0;
    for await (const chunk of answer.body ?? []) bytes += chunk.length;
    return { status: answer.status, bytes };
  };

  it(
    `${FETCHES} concurrent fetches of all branches stay within the memory limit [svc 2.23]`,
    { skip: process.platform !== "linux" && "reads /proc" },
    async () => {
      for (const name of ["one", "two"]) {
        await git(["clone", "-q", "--bare", `${svc.url}/org/many`, join(folder.path, name)]);
      }
      const oids = await git(["-C", path, "for-each-ref", "--format=%(objectname)"]);
      const wants = [...new Set(oids.split("\n"))].map((oid) => `want ${oid}`);
      assert.equal(wants.length, BRANCHES + 1);
      const names = ["HEAD", "refs/heads/", "refs/tags/"].map((prefix) => `ref-prefix ${prefix}`);
      const lsRefs = command("ls-refs", ["peel", "symrefs", ...names]);
      const body = command("fetch", [...wants, "ofs-delta", "no-progress", "done"]);
      // Each client asks for the refs itself, as stock git does.
      const cloned = async (): Promise<{ readonly status: number; readonly bytes: number }> => {
        assert.equal((await post(lsRefs)).status, 200);
        return await post(body);
      };
      const answers = await Promise.all(Array.from({ length: FETCHES }, cloned));
      for (const { status, bytes } of answers) {
        assert.equal(status, 200);
        assert.equal(bytes, answers[0]?.bytes);
      }
      const peak = megabytes("VmHWM");
      assert.ok(peak <= LOAD_MB, `the peak was ${Math.round(peak)} MB`);
      await until(
        () => megabytes("VmRSS") <= IDLE_MB,
        () => `${Math.round(megabytes("VmRSS"))} MB`,
      );
    },
  );
});
