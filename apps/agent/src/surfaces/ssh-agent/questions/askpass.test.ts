import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { until } from "@devplat/testkit";
import { testPrograms } from "../../../desktop/programs.test-kit.ts";
import { AskpassProgram, askpassProgram, type AskpassResult } from "./askpass.ts";

const never = new AbortController().signal;

/** Whether a process has ended. Nobody may have collected it yet. */
async function hasEnded(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => ") Z");
  return status.slice(status.lastIndexOf(")")).startsWith(") Z");
}

async function asked(
  script: string,
  kind: "confirm" | "passphrase" = "confirm",
  signal = never,
): Promise<string> {
  await using programs = await testPrograms();
  await programs.add("askpass", script);
  const program = new AskpassProgram(join(programs.folder, "askpass"), { PATH: programs.path });
  const result = await program.ask(kind, "prompt", signal);
  return typeof result === "string" ? result : `text: ${result.text.reveal()}`;
}

describe("AskpassProgram", () => {
  it("the first line of the output is the answer, without its line break", async () => {
    assert.equal(await asked("echo correct horse; echo second"), "text: correct horse");
    assert.equal(await asked("printf 'a\\r\\nb'"), "text: a");
    assert.equal(await asked("printf ' x '"), "text:  x ");
    assert.equal(await asked("exit 0"), "text: ");
  });

  it("an error, a signal and too much output are refusals", async () => {
    assert.equal(await asked("echo yes; exit 1"), "refused");
    assert.equal(await asked("echo yes; exit 255"), "refused");
    assert.equal(await asked("echo yes; kill -9 $$"), "refused");
    assert.equal(await asked("head -c 1025 /dev/zero"), "refused");
    assert.equal(await asked("exec cat /dev/urandom"), "refused");
    assert.equal(await asked("head -c 1024 /dev/zero | tr '\\0' x"), `text: ${"x".repeat(1024)}`);
  });

  it("a program that does not exist or cannot be run is not started", async () => {
    const program = (path: string): Promise<AskpassResult> =>
      new AskpassProgram(path, { PATH: "/usr/bin:/bin" }).ask("confirm", "prompt", never);
    assert.equal(await program("/nonexistent/askpass"), "not_started");
    assert.equal(await program("/etc/passwd"), "not_started");
    assert.equal(await program("no-such-askpass"), "not_started");
  });

  it("only a confirmation is marked as one, and the token of the daemon is left out", async () => {
    await using programs = await testPrograms();
    const seen = join(programs.folder, "seen");
    await programs.add("askpass", `printf '%s|%s' "$SSH_ASKPASS_PROMPT" "$1" > "${seen}"`);
    const environment = { PATH: programs.path, AGENT_TOKEN: "hidden", SSH_ASKPASS_PROMPT: "none" };
    const program = new AskpassProgram(join(programs.folder, "askpass"), environment);
    await program.ask("confirm", "Allow?\nverified: a", never);
    assert.equal(await readFile(seen, "utf8"), "confirm|Allow?\nverified: a");
    await program.ask("passphrase", "Enter: ", never);
    assert.equal(await readFile(seen, "utf8"), "|Enter: ");
    assert.equal(await programs.got("askpass", "token"), "");
  });

  it("one that hangs is ended with its children when the signal fires", async () => {
    await using programs = await testPrograms();
    const pids = join(programs.folder, "pids");
    await programs.add(
      "askpass",
      `sleep 600 & echo "$$ $!" > "${pids}.new"; mv "${pids}.new" "${pids}"; wait`,
    );
    const program = new AskpassProgram(join(programs.folder, "askpass"), { PATH: programs.path });
    const stop = new AbortController();
    const result = program.ask("confirm", "prompt", stop.signal);
    await until(async () => existsSync(pids));
    stop.abort();
    assert.equal(await result, "refused");
    const ended = (await readFile(pids, "utf8")).trim().split(" ").map(Number);
    assert.equal(ended.length, 2);
    for (const pid of ended) await until(() => hasEnded(pid));
  });

  it("a child that stays in the background does not delay the answer", async () => {
    await using programs = await testPrograms();
    // The child ends when the folder of the programs is removed, also after a failure.
    await programs.add("askpass", '(while [ -e "$0" ]; do sleep 0.05; done) & echo yes');
    const program = new AskpassProgram(join(programs.folder, "askpass"), { PATH: programs.path });
    const result = await program.ask("confirm", "prompt", never);
    assert.ok(typeof result === "object");
    assert.equal(result.text.reveal(), "yes");
  });

  it("a signal that has fired starts nothing", async () => {
    assert.equal(await asked("echo yes", "confirm", AbortSignal.abort()), "refused");
  });
});

describe("askpassProgram", () => {
  it("needs a program and a display, or the user's word that none is needed", () => {
    const has = (environment: NodeJS.ProcessEnv, platform: NodeJS.Platform = "linux"): boolean =>
      askpassProgram(environment, platform) !== undefined;
    assert.equal(has({}), false);
    assert.equal(has({ DISPLAY: ":0" }), false);
    assert.equal(has({ SSH_ASKPASS: "/a" }), false);
    assert.equal(has({ SSH_ASKPASS: "", DISPLAY: ":0" }), false);
    assert.equal(has({ SSH_ASKPASS: "/a", DISPLAY: ":0" }), true);
    assert.equal(has({ SSH_ASKPASS: "/a", WAYLAND_DISPLAY: "wayland-0" }), true);
    assert.equal(has({ SSH_ASKPASS: "/a", SSH_ASKPASS_REQUIRE: "force" }), true);
    assert.equal(has({ SSH_ASKPASS: "/a", SSH_ASKPASS_REQUIRE: "prefer" }), true);
    assert.equal(has({ SSH_ASKPASS: "/a", DISPLAY: ":0", SSH_ASKPASS_REQUIRE: "never" }), false);
    assert.equal(has({ SSH_ASKPASS: "/a" }, "darwin"), true);
  });
});
