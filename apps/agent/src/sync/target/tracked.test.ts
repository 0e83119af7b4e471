import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { workspace, type Workspace } from "../workspace.test-kit.ts";
import { RETRY_ALL } from "../retry-scope.ts";

let w: Workspace;
beforeEach(async () => {
  w = await workspace();
  await w.put("k", { token: "t" });
  await mkdir(join(w.home, "repo"), { mode: 0o700 });
  git("init", "-q");
});
afterEach(() => w.remove());

const never = new AbortController().signal;

function git(...args: string[]): void {
  const env = { PATH: process.env["PATH"], HOME: w.home, GIT_CONFIG_NOSYSTEM: "1" };
  execFileSync("git", args, { cwd: join(w.home, "repo"), env });
}

async function outcome(target: object = {}): Promise<string | null> {
  const rules = [{ name: "a", key: "k", target: { path: "~/repo/f.yaml", format: "yaml", ...target } }];
  const { engine, state } = await w.engine(rules);
  await engine.cycle(never, { retry: RETRY_ALL });
  return state.document.rules["a"]?.error ?? null;
}

describe("a target in a git work tree", () => {
  it("that is tracked is refused, and left as it is [agent 12.10]", async () => {
    await w.file("repo/f.yaml", "token: old\n");
    git("add", "f.yaml");
    assert.match((await outcome()) ?? "", /git tracks it.*allow_tracked/);
    assert.equal(await w.read("repo/f.yaml"), "token: old\n");
  });

  it("that is tracked is written with allow_tracked [agent 12.10]", async () => {
    await w.file("repo/f.yaml", "token: old\n");
    git("add", "f.yaml");
    assert.equal(await outcome({ allow_tracked: true }), null);
    assert.equal(await w.read("repo/f.yaml"), "token: t\n");
  });

  it("that is not tracked is written", async () => {
    assert.equal(await outcome(), null);
  });

  it("is refused when git cannot tell", async () => {
    await writeFile(join(w.home, "repo/.git/config"), "[core\n");
    assert.match((await outcome()) ?? "", /git cannot tell/);
  });

  it("the repository's own configuration runs no program", async () => {
    await w.file("repo/monitor", `#!/bin/sh\ntouch ${join(w.home, "ran")}\n`, 0o700);
    git("config", "core.fsmonitor", join(w.home, "repo/monitor"));
    await outcome();
    await assert.rejects(w.read("ran"), { code: "ENOENT" });
  });
});
