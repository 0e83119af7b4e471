import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { isUnedited } from "../generated-file.ts";
import { exitText } from "./exit-text.ts";
import { commandLine, stopCalls, UNIT_NAMES, unitTexts } from "./unit-files.ts";

const FOLDER = join(import.meta.dirname, "../../../../../deploy/systemd/user");

describe("units for systemd", () => {
  it("are those of the packages", () => {
    assert.deepEqual(UNIT_NAMES.toSorted(), readdirSync(FOLDER).toSorted());
  });

  it("start the given program, and say by whom they were written", () => {
    const texts = unitTexts(["/opt/my agent/agent"], { AGENT_NODE: "/opt/100%/node" });
    const service = texts.get("agent.service") ?? "";
    assert.match(service, /^ExecStart="\/opt\/my agent\/agent" run$/m);
    assert.match(service, /^ExecReload="\/opt\/my agent\/agent" reload$/m);
    assert.match(service, /^Environment=AGENT_NODE=\/opt\/100%%\/node\nExecStart=/m);
    assert.match(
      texts.get("agent-mount.service") ?? "",
      /^ExecStart="\/opt\/my agent\/agent" mount-helper$/m,
    );
    for (const [name, text] of texts) {
      assert.equal(isUnedited(text), true, name);
      assert.match(text, new RegExp(`Put changes into a drop-in: systemctl --user edit ${name}\n`));
      assert.doesNotMatch(text, /\/usr\/bin\/agent/, name);
    }
  });

  const lines: [words: string[], line: string][] = [
    [["/usr/bin/agent"], "/usr/bin/agent"],
    [["/a b/agent"], '"/a b/agent"'],
    [["/a%h/agent"], "/a%%h/agent"],
    [["/$HOME/agent", "$x", 'a"\\b'], '"/$HOME/agent" "$$x" "a\\"\\\\b"'],
    [["/ä;/agent"], '"/ä;/agent"'],
  ];
  for (const [words, line] of lines)
    it(`the command line of ${words.join(" ")} is ${line}`, () => assert.equal(commandLine(words), line));

  for (const path of ["/a'b", '/a"b', "/a\\b", "/a\nb", "/a\u007fb", "agent"]) {
    it(`refuses the program ${JSON.stringify(path)}`, () => {
      assert.throws(() => commandLine([path]), { code: "service_refused" });
    });
  }

  it("refuses a line break in an argument and in a variable", () => {
    const refused = { code: "service_refused" };
    assert.throws(() => commandLine(["/usr/bin/node", "/a\nExecStartPre=/b"]), refused);
    assert.throws(() => unitTexts(["/usr/bin/agent"], { AGENT_NODE: "/a\nExecStartPre=/b" }), refused);
  });

  it("the mount helper stops last: the daemon needs it to unmount", () => {
    const names = ["agent-mount.socket", "agent-api.socket", "agent.service", "agent-mount.service"];
    assert.deepEqual(stopCalls(names), [
      ["stop", "agent-api.socket", "agent.service"],
      ["stop", "agent-mount.socket", "agent-mount.service"],
    ]);
    assert.deepEqual(stopCalls(["agent.service"]), [["stop", "agent.service"]]);
  });

  const exits: [result: string, code: string, status: string, text: string | null][] = [
    ["success", "0", "0", null],
    ["success", "1", "0", "exit code 0"],
    ["exit-code", "1", "1", "exit code 1"],
    ["signal", "2", "9", "signal SIGKILL"],
    ["watchdog", "3", "6", "watchdog (signal SIGABRT)"],
    ["start-limit-hit", "1", "1", "start-limit-hit (exit code 1)"],
    ["resources", "0", "0", "resources"],
  ];
  for (const [Result, ExecMainCode, ExecMainStatus, text] of exits) {
    it(`the end ${Result} ${ExecMainCode} ${ExecMainStatus} is: ${text}`, () =>
      assert.equal(exitText({ Result, ExecMainCode, ExecMainStatus }), text));
  }
});
