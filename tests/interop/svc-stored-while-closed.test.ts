import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import {
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  tempFolder,
  until,
  type Svc,
} from "@devplat/testkit";
import { contentOf } from "./svc-git-stand.ts";

const HELD_READ = pathToFileURL(join(import.meta.dirname, "held-read.ts")).href;

it("a stored response is served while the check of the mirror is held up", async () => {
  const folder = await tempFolder("svc-stored-while-closed");
  const codeHost = await startCodeHost();
  const dataDir = join(folder.path, "data");
  const clone = async (svc: Svc, name: string, ...more: readonly string[]): Promise<void> => {
    const args = ["clone", "-q", "--bare", ...more, `${svc.url}/org/r`, join(folder.path, name)];
    const { code, stderr } = await run("git", args, { env: gitEnvironment() });
    assert.equal(code, 0, stderr);
  };
  const fetches = (): number => codeHost.calls.filter(({ command }) => command === "fetch").length;
  try {
    await codeHost.addRepository("org", "r", {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: 2 ** 20 }),
    });
    const first = await startSvc({ codeHost, dataDir });
    await first.addCachedRepository("org", "r");
    await clone(first, "first");
    // The check reads this file on every opening.
    const checked = join(dataDir, "cache", "org", "r.git", "checked.json");
    while (!existsSync(checked)) await sleep(20);
    assert.equal(await first.stop(), 0);

    const env = { NODE_OPTIONS: `--import=${HELD_READ}`, HELD_FILE: checked };
    const second = await startSvc({ codeHost, dataDir, env });
    try {
      codeHost.resetCalls();
      await clone(second, "stored");
      assert.equal(fetches(), 0, "the stored response answered");
      assert.equal(await contentOf(join(folder.path, "stored")), await contentOf(join(folder.path, "first")));
      await until(() => existsSync(`${checked}.begun`));
      // Another request needs the mirror. It goes to the code host, and the stored response is served as before.
      await clone(second, "without-blobs", "--filter=blob:none");
      assert.equal(fetches(), 1);
      await clone(second, "again");
      assert.equal(fetches(), 1);
    } finally {
      await writeFile(`${checked}.go`, "");
      assert.equal(await second.stop(), 0);
    }
  } finally {
    await codeHost.stop();
    await folder.remove();
  }
});
