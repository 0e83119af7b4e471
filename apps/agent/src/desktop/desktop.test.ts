import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, it } from "node:test";
import { DesktopBrowser } from "./browser.ts";
import { DesktopNotifier } from "./notifier.ts";
import { firstThatWorks } from "./program.ts";
import { testPrograms } from "./programs.test-kit.ts";

const URL = "https://example.com/?a=$(id)&b='c'";

describe("DesktopBrowser", () => {
  it("passes the address to the system's opener as one argument, without the token [agent 5.32]", async () => {
    await using programs = await testPrograms();
    for (const [platform, opener, args] of [
      ["linux", "xdg-open", `${URL}\n`],
      ["darwin", "open", `${URL}\n`],
      ["win32", "rundll32", `url.dll,FileProtocolHandler\n${URL}\n`],
    ] as const) {
      await programs.add(opener);
      const browser = new DesktopBrowser({ PATH: programs.path, AGENT_TOKEN: "hidden" }, platform);
      assert.equal(await browser.open(URL), "done");
      assert.equal(await programs.got(opener, "args"), args);
      assert.equal(await programs.got(opener, "token"), "");
    }
  });

  it("an opener that fails gives way to the next", async () => {
    await using programs = await testPrograms();
    await programs.add("xdg-open", "exit 3");
    await programs.add("gio");
    assert.equal(await new DesktopBrowser({ PATH: programs.path }, "linux").open(URL), "done");
    assert.equal(await programs.got("gio", "args"), `open\n${URL}\n`);
    await programs.add("gio", "exit 2");
    assert.equal(await new DesktopBrowser({ PATH: programs.path }, "linux").open(URL), "failed");
  });

  it("an opener that has become the browser is left alone", async () => {
    await using programs = await testPrograms();
    const [go, lived] = [join(programs.folder, "go"), join(programs.folder, "lived.input")];
    await programs.add("opener", `while [ ! -e "${go}" ]; do sleep 0.02; done; echo yes > "${lived}"`);
    const options = { environment: { PATH: programs.path }, settledAfterMs: 50 };
    assert.equal(await firstThatWorks([["opener"]], options), "done");
    await writeFile(go, "");
    while ((await programs.got("lived", "input").catch(() => "")) === "") await sleep(10);
  });

  it("ends programs that hang after their common time limit, and tries no other one [agent 29.5]", async () => {
    await using programs = await testPrograms();
    await programs.add("hanging", "exec sleep 60");
    await programs.add("next");
    const options = { environment: { PATH: programs.path }, timeoutMs: 100 };
    assert.equal(await firstThatWorks([["hanging"], ["next"]], options), "failed");
    await assert.rejects(programs.got("next", "args"), { code: "ENOENT" });
  });

  it("without an opener there is no browser", async () => {
    assert.equal(await new DesktopBrowser({ PATH: "/nonexistent" }, "linux").open(URL), "no_program");
  });
});

describe("DesktopNotifier", () => {
  const hostile = {
    level: "error",
    title: "--<b>\u001bt\\x41",
    body: "-x <i>\\074b\\076\u0007\nnext",
    actionUrl: "https://example.com/?a=1&b=2",
  } as const;

  it("notify-send gets text without controls and markup, and the address at the end", async () => {
    await using programs = await testPrograms();
    await programs.add("notify-send");
    const environment = { PATH: programs.path, AGENT_TOKEN: "hidden" };
    assert.equal(await new DesktopNotifier(environment, "linux").raise(hostile), "done");
    const lines = [
      "--app-name=daemon",
      "--urgency=critical",
      "--icon=dialog-error",
      "--",
      "--‹b›t\\x41",
      // It reads C escapes here, which would bring back the tag.
      "-x &lt;i&gt;\\\\074b\\\\076 next",
      "https://example.com/?a=1&amp;b=2",
    ];
    assert.equal(await programs.got("notify-send", "args"), `${lines.join("\n")}\n`);
    assert.equal(await programs.got("notify-send", "token"), "");
  });

  it("each level looks its own way", async () => {
    await using programs = await testPrograms();
    await programs.add("notify-send");
    const notifier = new DesktopNotifier({ PATH: programs.path }, "linux");
    const looks: string[] = [];
    for (const level of ["info", "warning", "error", "attention"] as const) {
      await notifier.raise({ level, title: "t" });
      looks.push((await programs.got("notify-send", "args")).split("\n").slice(1, 3).join(" "));
    }
    assert.deepEqual(looks, [
      "--urgency=normal --icon=dialog-information",
      "--urgency=normal --icon=dialog-warning",
      "--urgency=critical --icon=dialog-error",
      "--urgency=critical --icon=dialog-information",
    ]);
  });

  it("on macOS the words are arguments of the script", async () => {
    await using programs = await testPrograms();
    await programs.add("osascript");
    assert.equal(await new DesktopNotifier({ PATH: programs.path }, "darwin").raise(hostile), "done");
    const body = "-x <i>\\074b\\076 next\nhttps://example.com/?a=1&b=2";
    assert.equal(await programs.got("osascript", "args"), `-\n--<b>t\\x41\n${body}\n`);
    assert.doesNotMatch(await programs.got("osascript", "input"), /next|example/);
  });

  it("on Windows a click opens the address, and no text of the caller is in the script [agent 29.9]", async () => {
    await using programs = await testPrograms();
    await programs.add("powershell.exe");
    assert.equal(await new DesktopNotifier({ PATH: programs.path }, "win32").raise(hostile), "done");
    const input = Buffer.from(await programs.got("powershell.exe", "input"), "base64").toString();
    assert.deepEqual(JSON.parse(input), {
      title: "--<b>t\\x41",
      body: "-x <i>\\074b\\076 next",
      url: hostile.actionUrl,
    });
    const args = (await programs.got("powershell.exe", "args")).trim().split("\n");
    const script = Buffer.from(args.at(-1) ?? "", "base64").toString("utf16le");
    assert.match(script, /SetAttribute\('launch', \$words\.url\)/);
    assert.doesNotMatch(script, /next|example/);
  });

  it("without a program there are no notifications, and one that fails is said to", async () => {
    const none = new DesktopNotifier({ PATH: "/nonexistent" }, "linux");
    assert.equal(await none.raise({ level: "info", title: "t" }), "no_program");
    await using programs = await testPrograms();
    await programs.add("notify-send", "exit 1");
    const failing = new DesktopNotifier({ PATH: programs.path }, "linux");
    assert.equal(await failing.raise({ level: "info", title: "t" }), "failed");
  });
});
