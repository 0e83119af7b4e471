import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { DesktopClipboard, MAX_CLIPBOARD_BYTES, clipboardCommands } from "./clipboard.ts";
import { testPrograms } from "./programs.test-kit.ts";

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
  const clipboard = (path: string): DesktopClipboard =>
    new DesktopClipboard({ PATH: path, DISPLAY: ":0", AGENT_TOKEN: "hidden" }, "linux");

  it("the program gets the text byte for byte on standard input, and no token [agent 5.32]", async () => {
    await using programs = await testPrograms();
    await programs.add("xclip");
    const text = "a\r\nb\tü\n".repeat(100);
    assert.equal(await clipboard(programs.path).copy(new Secret(text)), "copied");
    assert.equal(await programs.got("xclip", "input"), text);
    assert.equal(await programs.got("xclip", "args"), "-selection\nclipboard\n");
    assert.equal(await programs.got("xclip", "token"), "");
  });

  it("a program that fails gives way to the next", async () => {
    await using programs = await testPrograms();
    await programs.add("xclip", "exit 1");
    await programs.add("xsel");
    assert.equal(await clipboard(programs.path).copy(new Secret("x")), "copied");
    assert.equal(await programs.got("xsel", "args"), "--clipboard\n--input\n");
    await programs.add("xsel", "exit 1");
    assert.equal(await clipboard(programs.path).copy(new Secret("x")), "failed");
  });

  it("without a program there is no clipboard", async () => {
    assert.equal(await clipboard("/nonexistent").copy(new Secret("x")), "no_program");
    assert.equal(await new DesktopClipboard({}, "linux").copy(new Secret("x")), "no_program");
  });

  it("refuses what is empty, over 64 KiB, holds NUL or is not Unicode", async () => {
    await using programs = await testPrograms();
    await programs.add("xclip");
    for (const text of [
      "",
      "a\0b",
      "\ud800",
      "x".repeat(MAX_CLIPBOARD_BYTES + 1),
      "ü".repeat(MAX_CLIPBOARD_BYTES / 2 + 1),
    ])
      assert.equal(await clipboard(programs.path).copy(new Secret(text)), "unusable_text");
    assert.equal(await clipboard(programs.path).copy(new Secret("x".repeat(MAX_CLIPBOARD_BYTES))), "copied");
  });

  it("pbcopy gets UTF-8, clip.exe UTF-16 with a byte order mark", async () => {
    await using programs = await testPrograms();
    const environment = { PATH: programs.path, AGENT_TOKEN: "hidden" };
    for (const [platform, program, encoding] of [
      ["darwin", "pbcopy", "utf8"],
      ["win32", "clip.exe", "utf16le"],
    ] as const) {
      await programs.add(program);
      assert.equal(
        await new DesktopClipboard(environment, platform).copy(new Secret("pä\u{1F511}")),
        "copied",
      );
      const got = await readFile(join(programs.folder, `${program}.input`));
      const text = platform === "win32" ? "\uFEFFpä\u{1F511}" : "pä\u{1F511}";
      assert.equal(got.toString(encoding), text);
      assert.equal(await programs.got(program, "args"), "\n");
      assert.equal(await programs.got(program, "token"), "");
    }
  });
});
