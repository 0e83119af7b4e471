import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { AGENT_LAUNCHER, spawnGroup, tempFolder, until } from "@devplat/testkit";
import { Home } from "./agent-stand.ts";

/** The kernel's words for the limit of core files: none, neither soft nor hard. */
const NO_CORE = /^Max core file size +0 +0 /m;

describe("a daemon that crashes", () => {
  it("leaves no core file, with any limit at its start", async (context) => {
    const folder = await tempFolder("core");
    context.after(() => folder.remove());
    const home = new Home(folder.path);
    await home.configure("store: { driver: embedded }\n");
    const cwd = join(folder.path, "cwd");
    await mkdir(cwd);
    const child = spawnGroup("sh", ["-c", `ulimit -c unlimited; exec "$0" run`, AGENT_LAUNCHER], {
      env: home.env,
      cwd,
    });
    context.after(() => child.kill("SIGKILL"));
    let log = "";
    child.stderr?.on("data", (chunk: Buffer) => (log += chunk.toString()));
    const ended = once(child, "exit");
    await until(
      () => log.includes("daemon started"),
      () => log,
    );
    assert.match(await readFile(`/proc/${child.pid}/limits`, "utf8"), NO_CORE);
    child.kill("SIGABRT");
    assert.deepEqual(await ended, [null, "SIGABRT"]);
    assert.deepEqual(await readdir(cwd), []);
  });
});
