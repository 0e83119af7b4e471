import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import { recordingPrograms, type RecordingPrograms } from "../recording-programs.test-kit.ts";
import type { InstallPlan } from "../service.ts";
import { ScheduledTask } from "./scheduled-task.ts";
import { taskFile, taskXml, windowsArguments } from "./task-xml.ts";

/** Keeps one task. It gives the definition back in another form, as Windows does. */
const SCHTASKS = `
task=$STATE/task
case "$1" in
  /Create) iconv -f UTF-16 -t UTF-8 "$5" | tr -d '\\r' | sed 's/^ *//' >$task; [ ! -e $STATE/killed ] || exit 1 ;;
  /Query) [ -e $task ] || { echo "ERROR: The system cannot find the file specified." >&2; exit 1; }
    case "$4" in
      /XML) cat $task ;;
      *) printf '"HOST","%s","N/A","Ready","Interactive only","N/A","%s","x"\\r\\n' "$3" "$(cat $STATE/result 2>/dev/null || echo 267011)" ;;
    esac ;;
  /Run) echo 267009 >$STATE/result ;;
  /End) echo 267014 >$STATE/result ;;
  /Delete) rm $task ;;
  /Change) case "$4" in /DISABLE) v=false ;; *) v=true ;; esac
    sed -i "/<Settings>/,/<.Settings>/s/<Enabled>[a-z]*</<Enabled>$v</" $task ;;
esac`;

const EXE = "C:\\Program Files\\agent\\agent.exe";
const PLAN: InstallPlan = { command: [EXE], variables: {}, sockets: new Map(), force: false, dryRun: false };
const DAEMON = 4711;

describe("the service of the Task Scheduler, with a stand-in for schtasks", () => {
  let programs: RecordingPrograms;
  let service: ScheduledTask;
  let killed: number[];
  let state = "";
  beforeEach(async () => {
    programs = await recordingPrograms();
    await programs.add("schtasks.exe", SCHTASKS);
    killed = [];
    state = join(programs.folder, "daemon");
    service = new ScheduledTask({
      home: "C:\\Users\\ada",
      state,
      environment: { ...programs.environment, USERDOMAIN: "HOST" },
      username: "ada",
      daemonPid: async () => DAEMON,
      kill: (pid) => void killed.push(pid),
    });
  });
  afterEach(async () => programs[Symbol.asyncDispose]());

  const changes = async (): Promise<string[]> =>
    (await programs.calls())
      .filter((call) => !call.includes("/Query"))
      .map((call) => call.replaceAll(programs.folder, "~"));

  it("install registers and starts the task; a second one changes nothing", async () => {
    assert.deepEqual((await service.install({ ...PLAN, dryRun: true })).actions, ["started agent-ada"]);
    assert.deepEqual(await changes(), []);
    const { files, actions } = await service.install(PLAN);
    assert.deepEqual(
      [files, actions],
      [[{ path: "\\agent-ada", outcome: "written" }], ["started agent-ada"]],
    );
    assert.deepEqual(await changes(), [
      "schtasks.exe /Create /TN agent-ada /XML ~/daemon/service-task.xml /F",
      "schtasks.exe /Run /TN agent-ada",
    ]);
    assert.deepEqual(await service.state(), {
      installed: true,
      enabled: true,
      active: "active",
      pid: DAEMON,
      since: null,
      restarts: null,
      last_exit: null,
      files: [{ path: "\\agent-ada", outcome: "unchanged" }],
      sockets: [],
      problems: [],
    });
    const again = await service.install(PLAN);
    assert.deepEqual([again.files[0]?.outcome, again.actions], ["unchanged", []]);
    assert.deepEqual(await changes(), []);
  });

  it("another program replaces the task, and ends the daemon", async () => {
    await service.install(PLAN);
    await changes();
    const { files, actions } = await service.install({ ...PLAN, command: ["D:\\agent.exe"] });
    assert.deepEqual([files[0]?.outcome, actions], ["replaced", ["restarted agent-ada"]]);
    assert.deepEqual((await changes()).slice(1), [
      "schtasks.exe /End /TN agent-ada",
      "schtasks.exe /Run /TN agent-ada",
    ]);
    assert.deepEqual(killed, [DAEMON]);
  });

  it("an install that was killed after the task was made is completed", async () => {
    await programs.set("killed", "");
    await assert.rejects(service.install(PLAN), { code: "service_failed", message: /schtasks \/Create/ });
    await programs.add("schtasks.exe", SCHTASKS.replace("$STATE/killed", "/nonexistent"));
    const { files, actions } = await service.install(PLAN);
    assert.deepEqual([files[0]?.outcome, actions], ["replaced", ["started agent-ada"]]);
    assert.equal((await service.install(PLAN)).files[0]?.outcome, "unchanged");
  });

  it("an edited task stays until --force, and remove only disables it", async () => {
    await service.install(PLAN);
    const task = join(programs.folder, "state/task");
    const edited = (await readFile(task, "utf8")).replace("PT1M", "PT5M");
    await programs.set("task", edited);
    assert.equal((await service.install(PLAN)).files[0]?.outcome, "kept");
    assert.equal((await service.state()).files[0]?.outcome, "kept");
    const removed = await service.remove({ dryRun: false });
    assert.deepEqual(removed.actions, ["stopped agent-ada", "disabled agent-ada"]);
    assert.equal(removed.files[0]?.outcome, "kept");
    await service.install(PLAN);
    const [file] = (await service.install({ ...PLAN, force: true })).files;
    assert.match(await readFile(file?.backup ?? "", "utf16le"), /PT5M/);
    assert.match(await readFile(task, "utf8"), /PT1M/);
  });

  it("a task of another program with this name is not taken", async () => {
    await programs.set("task", "<Task><Settings><Enabled>true</Enabled></Settings></Task>");
    assert.equal((await service.install(PLAN)).files[0]?.outcome, "kept");
  });

  it("a disabled task is not an edited one, and is enabled", async () => {
    await service.install(PLAN);
    await programs.set(
      "task",
      (await readFile(join(programs.folder, "state/task"), "utf8")).replace(/(<WakeToRun>)/, "$1"),
    );
    await service.install(PLAN);
    execFileSync(join(programs.folder, "bin/schtasks.exe"), ["/Change", "/TN", "agent-ada", "/DISABLE"], {
      env: programs.environment,
    });
    const { enabled, files, problems } = await service.state();
    assert.deepEqual(
      [enabled, files[0]?.outcome, problems],
      [false, "unchanged", ["the task agent-ada is disabled"]],
    );
    const again = await service.install(PLAN);
    assert.deepEqual([again.files[0]?.outcome, again.actions], ["unchanged", ["enabled agent-ada"]]);
  });

  it("remove ends and deletes the task, and can be repeated", async () => {
    await service.install(PLAN);
    await changes();
    const { files, actions } = await service.remove({ dryRun: false });
    assert.deepEqual([files[0]?.outcome, actions], ["removed", ["stopped agent-ada"]]);
    assert.deepEqual(await changes(), [
      "schtasks.exe /End /TN agent-ada",
      "schtasks.exe /Delete /TN agent-ada /F",
    ]);
    assert.deepEqual(await service.remove({ dryRun: false }), { files: [], actions: [], notes: [] });
    assert.equal((await service.state()).installed, false);
  });

  it("the last exit is told, and a code of the scheduler is not taken for one", async () => {
    await service.install(PLAN);
    for (const [result, text] of [
      ["1", "exit code 1"],
      ["267011", null],
      ["267014", "ended by the user"],
    ] as const) {
      await programs.set("result", result);
      const { active, last_exit: exit } = await service.state();
      assert.deepEqual([active, exit], ["inactive", text]);
    }
  });
});

/** Reads a task as the schema of the Task Scheduler 1.2 has it: names, what may be in what, and types. */
const READER = `
import json, re, sys, xml.etree.ElementTree as tree
data = sys.stdin.buffer.read()
assert data[:2] == b"\\xff\\xfe", "no byte order mark"
root = tree.fromstring(data)
space = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"
text, flag, span = r"[^\\0]*", r"true|false", r"P(?!$)(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+S)?)?"
trigger = {"Enabled": flag, "Repetition": {"Interval": span, "Duration": span, "StopAtDurationEnd": flag}, "UserId": text, "Delay": span}
schema = {"RegistrationInfo": {"Description": text, "URI": text},
  "Triggers": {"LogonTrigger": trigger},
  "Principals": {"Principal": {"UserId": text, "LogonType": "InteractiveToken|S4U|Password", "RunLevel": "LeastPrivilege|HighestAvailable"}},
  "Settings": {"MultipleInstancesPolicy": "Parallel|Queue|IgnoreNew|StopExisting", "DisallowStartIfOnBatteries": flag,
    "StopIfGoingOnBatteries": flag, "AllowHardTerminate": flag, "StartWhenAvailable": flag, "RunOnlyIfNetworkAvailable": flag,
    "AllowStartOnDemand": flag, "Enabled": flag, "Hidden": flag, "RunOnlyIfIdle": flag, "WakeToRun": flag,
    "ExecutionTimeLimit": span, "Priority": "[0-9]|10"},
  "Actions": {"Exec": {"Command": text, "Arguments": text, "WorkingDirectory": text}}}
def read(node, rule):
    if isinstance(rule, str):
        assert len(node) == 0 and re.fullmatch(rule, node.text or ""), (node.tag, node.text)
        return node.text
    found = {}
    for child in node:
        assert child.tag.startswith(space), child.tag
        name = child.tag[len(space):]
        assert name in rule and name not in found, name
        found[name] = read(child, rule[name])
    return found
assert root.tag == space + "Task" and root.attrib == {"version": "1.2"}, root.attrib
order = [child.tag[len(space):] for child in root.find(".//" + space + "LogonTrigger")]
assert order.index("Enabled") < order.index("Repetition") < order.index("UserId"), order
ids = [root.find(".//" + space + "Principal").get("id"), root.find(space + "Actions").get("Context")]
assert ids[0] == ids[1], ids
print(json.dumps(read(root, schema)))
`;

describe("the definition of the task", () => {
  it("is read by another reader, in UTF-16, with the values that were meant", () => {
    const xml = taskXml({ account: "HOST\\ädä & co", command: [EXE], home: "C:\\Users\\ädä & co" });
    const read = JSON.parse(execFileSync("python3", ["-c", READER], { input: taskFile(xml) }).toString()) as {
      Actions: unknown;
      Principals: { Principal: { UserId: string } };
    };
    assert.deepEqual(read.Actions, {
      Exec: {
        Command: "%SystemRoot%\\System32\\conhost.exe",
        Arguments: '--headless "C:\\Program Files\\agent\\agent.exe" run',
        WorkingDirectory: "C:\\Users\\ädä & co",
      },
    });
    assert.equal(read.Principals.Principal.UserId, "HOST\\ädä & co");
  });

  it("a command line gives the words back", () => {
    const word = fc.string({ unit: fc.constantFrom("a", " ", "\\", '"', "\t"), maxLength: 8 });
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 4 }), (words) => {
        assert.deepEqual(wordsOf(windowsArguments(words)), words);
      }),
    );
  });
});

/** Rules of CommandLineToArgvW, as Microsoft documents them. */
function wordsOf(line: string): string[] {
  const words: string[] = [];
  let [word, quoted, started] = ["", false, false];
  for (let at = 0; at < line.length; at++) {
    const slashes = /^\\*/.exec(line.slice(at))?.[0].length ?? 0;
    const isBeforeQuote = line[at + slashes] === '"';
    if (slashes > 0) {
      started = true;
      word += "\\".repeat(isBeforeQuote ? Math.floor(slashes / 2) : slashes);
      at += slashes - 1;
      if (isBeforeQuote && slashes % 2 === 1) {
        word += '"';
        at++;
      }
    } else if (isBeforeQuote) [quoted, started] = [!quoted, true];
    else if (!quoted && /\s/.test(line[at] ?? "")) {
      if (started) words.push(word);
      [word, started] = ["", false];
    } else [word, started] = [word + (line[at] ?? ""), true];
  }
  return started ? [...words, word] : words;
}
