import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { DesktopClipboard, MAX_CLIPBOARD_BYTES, clipboardCommands } from "./clipboard.ts";

describe("clipboardCommands", () => {
  const names = (environment: NodeJS.ProcessEnv, platform: NodeJS.Platform): string[] =>
    clipboardCommands(environment, platform).map(([program]) => program);

  it("depend on the platform and on the display that is there", () => {
    assert.deepEqual(names({}, "linux"), []);
    assert.deepEqual(names({ DISPLAY: ":0" }, "linux"), ["xclip", "xsel"]);
    assert.deepEqual(names({ WAYLAND_DISPLAY: "w", DISPLAY: ":0" }, "linux"), ["wl-copy", "xclip", "xsel"]);
    assert.deepEqual(names({}, "darwin"), ["pbcopy"]);
    assert.deepEqual(names({}, "win32"), ["clip.exe"]);
  });
});

describe("DesktopClipboard", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "agent-clipboard-"));
  });
  after(() => rm(folder, { recursive: true }));

  /** A program of the name that writes what it gets, its arguments and its token variable into files. */
  async function program(name: string, exitCode: number): Promise<void> {
    const path = join(folder, name);
    const script = `#!/bin/sh\ncat > "${folder}/text"\nprintf '%s' "$*" > "${folder}/args"\nprintf '%s' "$AGENT_TOKEN" > "${folder}/token"\nexit ${exitCode}\n`;
    await writeFile(path, script);
    await chmod(path, 0o755);
  }
  const clipboard = (): DesktopClipboard =>
    new DesktopClipboard({ PATH: `${folder}:/usr/bin:/bin`, DISPLAY: ":0", AGENT_TOKEN: "hidden" }, "linux");
  const written = (name: string): Promise<string> => readFile(join(folder, name), "utf8");

  it("the text goes to the program's standard input, byte for byte, and the daemon's token does not", async () => {
    await program("xclip", 0);
    const text = "a\r\nb\tü\n".repeat(100);
    assert.equal(await clipboard().copy(new Secret(text)), "copied");
    assert.equal(await written("text"), text);
    assert.equal(await written("args"), "-selection clipboard");
    assert.equal(await written("token"), "");
  });

  it("a program that fails gives way to the next", async () => {
    await program("xclip", 1);
    await program("xsel", 0);
    assert.equal(await clipboard().copy(new Secret("x")), "copied");
    assert.equal(await written("args"), "--clipboard --input");
    await program("xsel", 1);
    assert.equal(await clipboard().copy(new Secret("x")), "failed");
  });

  it("without a program there is no clipboard", async () => {
    const bare = new DesktopClipboard({ PATH: join(folder, "nothing"), DISPLAY: ":0" }, "linux");
    assert.equal(await bare.copy(new Secret("x")), "no_program");
    assert.equal(await new DesktopClipboard({}, "linux").copy(new Secret("x")), "no_program");
  });

  it("refuses what is empty, over 64 KiB, holds NUL or is not Unicode", async () => {
    for (const text of [
      "",
      "a\0b",
      "\ud800",
      "x".repeat(MAX_CLIPBOARD_BYTES + 1),
      "ü".repeat(MAX_CLIPBOARD_BYTES / 2 + 1),
    ])
      assert.equal(await clipboard().copy(new Secret(text)), "unusable_text");
    await program("xclip", 0);
    assert.equal(await clipboard().copy(new Secret("x".repeat(MAX_CLIPBOARD_BYTES))), "copied");
  });
});
