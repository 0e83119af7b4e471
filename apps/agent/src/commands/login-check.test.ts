import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parseCommandLine } from "@devplat/cli";
import { run } from "./login-check.ts";
import { PROGRAM } from "./program.ts";

describe("login-check rule 2: --no-passwd", () => {
  it("is ignored with a warning on Windows [agent 8.6]", async (t) => {
    const home = await mkdtemp(join(tmpdir(), "login-check-"));
    t.after(() => rm(home, { recursive: true, force: true }));
    await mkdir(join(home, ".config/daemon"), { recursive: true, mode: 0o700 });
    await writeFile(join(home, ".config/daemon/config.yaml"), "rules: 3\n", { mode: 0o600 });
    const parsed = parseCommandLine(PROGRAM, ["login-check", "--no-passwd"], {
      HOME: home,
      XDG_CONFIG_DIRS: home,
      AGENT_SUPPRESS_MARKER: join(home, "marker"),
    });
    assert.ok(parsed.kind === "command");
    let shown = "";
    t.mock.method(process.stderr, "write", (text: string) => (shown += text) !== "");
    t.mock.property(process, "platform", "win32");
    // Had it been heeded, the present user's entry would have ended it before the configuration is looked at.
    await assert.rejects(run(parsed.invocation), /rules: expected a list/);
    assert.equal(shown, "agent: --no-passwd has no meaning on Windows and is ignored\n");
    assert.ok((await stat(join(home, "marker"))).isFile(), "rule 5");
  });
});
