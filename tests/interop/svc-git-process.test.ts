import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  tempFolder,
  type CodeHost,
  type Finished,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import { contentOf, rawExchange } from "./svc-git-stand.ts";

describe("the real process", () => {
  let codeHost: CodeHost;
  let folder: TempFolder;
  before(async () => {
    codeHost = await startCodeHost();
    folder = await tempFolder("svc-process");
    await codeHost.addRepository("org", "r", {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: 3 * 2 ** 20 }),
    });
  });
  after(async () => {
    await codeHost.stop();
    await folder.remove();
  });

  const clone = (svc: Svc, name: string): Promise<Finished> =>
    run("git", ["clone", "-q", "--bare", `${svc.url}/org/r`, join(folder.path, name)], {
      env: gitEnvironment(),
    });
  const files = async (dataDir: string): Promise<string[]> => {
    const path = join(dataDir, "cache", "_responses", "org", "r");
    return (await readdir(path).catch(() => [])).filter((name) => name !== "origin.json");
  };

  it("development mode answers git under no foreign Host", async () => {
    const svc = await startSvc({ codeHost });
    try {
      const get = (host: string): Promise<string> =>
        rawExchange(
          svc.url,
          "GET /org/r/info/refs?service=git-upload-pack HTTP/1.1\r\n" +
            `Host: ${host}\r\nConnection: close\r\n\r\n`,
          5000,
        );
      assert.match(await get("localhost"), /^HTTP\/1\.1 200 /);
      assert.match(await get("rebound.example"), /^HTTP\/1\.1 421 /);
    } finally {
      await svc.stop();
    }
  });

  it("kill -9 during a miss leaves no broken response: the next is a miss, then a hit [svc 5.10]", async () => {
    const dataDir = join(folder.path, "data");
    const first = await startSvc({ codeHost, dataDir });
    await first.addCachedRepository("org", "r");
    codeHost.inject({ command: "fetch", times: 1 }, { stallAfterBytes: 1_000_000 });
    const broken = clone(first, "broken");
    const asked = (): boolean => codeHost.calls.some((call) => call.command === "fetch");
    while (!asked() || (await files(dataDir)).length === 0) await sleep(20);
    first.kill();
    assert.notEqual((await broken).code, 0);
    assert.deepEqual(
      (await files(dataDir)).map((name) => name.endsWith(".aside~")),
      [true],
    );
    await first.stop();

    const second = await startSvc({ codeHost, dataDir });
    try {
      assert.deepEqual(await files(dataDir), []);
      codeHost.resetCalls();
      for (const name of ["again", "hit"]) {
        const result = await clone(second, name);
        assert.equal(result.code, 0, result.stderr);
      }
      assert.equal(codeHost.calls.filter((call) => call.command === "fetch").length, 1);
      assert.equal(await contentOf(join(folder.path, "hit")), await contentOf(join(folder.path, "again")));
      const size = /^svc_cache_response_size_bytes\{owner="org",repo="r"\} 3\d{6}$/m;
      let metrics = "";
      // The answer gets its name, and is counted, behind the client.
      while (!size.test(metrics)) metrics = await (await fetch(second.metricsUrl)).text();
      assert.match(metrics, /^svc_cache_fetch_total\{result="hit"\} 1$/m);
      assert.match(metrics, /^svc_cache_fetch_total\{result="miss"\} 1$/m);
      assert.match(metrics, /^svc_cache_lsrefs_total 2$/m);
      assert.match(metrics, /^svc_cache_repos_active 1$/m);
      assert.match(metrics, /^svc_proxy_decision_duration_seconds_count\{stage="cache_lookup"\} \d+$/m);
      await second.logged(/"cache_state":"hit","cache_repo":"org\/r"/);
    } finally {
      assert.equal(await second.stop(), 0);
    }
  });
});
