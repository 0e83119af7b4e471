import assert from "node:assert/strict";
import { request, type ClientRequest } from "node:http";
import { after, afterEach, before, describe, it } from "node:test";
import { git, repositories, until } from "@devplat/testkit";
import { command, startStand, type Stand } from "./svc-git-stand.ts";

const LS_REFS = command("ls-refs", []);
const READERS = 150;
/** Time of the code host for each fetch. All of them, two at a time, would take 75 s. */
const HOST_MS = 1000;
/** The limit for all readers to begin is 10 s on an idle machine; this leaves room for a loaded one. */
const BEGUN_MS = 40_000;
const MEGABYTE = 2 ** 20;

describe("clients that read slowly", { timeout: 240_000 }, () => {
  let stand: Stand;
  const readers: ClientRequest[] = [];
  before(async () => {
    stand = await startStand({ listed: ["many", "large"] });
  });
  afterEach(() => {
    for (const reader of readers.splice(0)) reader.destroy();
    stand.codeHost.clearFaults();
  });
  after(() => stand.stop());

  /** A repository with a large file, and so many commits; newest first. */
  const add = async (name: string, count: number, bytes: number): Promise<string[]> => {
    const { path } = await stand.codeHost.addRepository("org", name, {
      build: async (dir) => {
        await repositories.bigBlobs(dir, { blobs: 1, bytes });
        await repositories.append(dir, { commits: count });
      },
    });
    await git(["-C", path, "config", "uploadpack.allowSidebandAll", "true"]);
    await stand.post(`org/${name}`, LS_REFS);
    return (await git(["-C", path, "rev-list", "main"])).split("\n");
  };

  /** Posts fetches whose answers are read to their first bytes only. @returns the statuses of those that have begun */
  const read = (name: string, requests: readonly (readonly string[])[]): readonly number[] => {
    const begun: number[] = [];
    for (const args of requests) {
      const body = command("fetch", args);
      const headers = {
        "Content-Type": "application/x-git-upload-pack-request",
        "Git-Protocol": "version=2",
        "Content-Length": body.length,
      };
      const options = { method: "POST", agent: false as const, headers };
      const reader = request(`${stand.url}/org/${name}/git-upload-pack`, options, (response) => {
        response.once("data", () => {
          begun.push(response.statusCode ?? 0);
          response.pause();
        });
      });
      reader.on("error", () => undefined);
      reader.end(body);
      readers.push(reader);
    }
    return begun;
  };

  it(`${READERS} readers of different shallow histories begin within the limit [svc 2.22]`, async () => {
    const commits = await add("many", READERS, 1 * MEGABYTE);
    stand.codeHost.inject({ command: "fetch" }, { delayMs: HOST_MS });
    const startedAt = performance.now();
    const begun = read(
      "many",
      commits.slice(0, READERS).map((oid) => [`want ${oid}`, "deepen 1", "done"]),
    );
    await until(
      () => begun.length === READERS,
      () => `${begun.length} have begun`,
    );
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs < BEGUN_MS, `it took ${Math.round(tookMs)} ms`);
    assert.deepEqual([...new Set(begun)], [200]);
  });

  it("readers of answers that are never stored hold no turn at the code host [svc 2.22]", async () => {
    const commits = await add("large", 6, 24 * MEGABYTE);
    const begun = read(
      "large",
      commits.slice(0, 6).map((oid) => [`want ${oid}`, "deepen 1", "sideband-all", "done"]),
    );
    await until(
      () => begun.length === 6,
      () => `${begun.length} have begun`,
    );
    assert.deepEqual([...new Set(begun)], [200]);
  });
});
