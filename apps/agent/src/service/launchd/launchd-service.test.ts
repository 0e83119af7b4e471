import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { isUnedited } from "../generated-file.ts";
import { recordingPrograms, type RecordingPrograms } from "../recording-programs.test-kit.ts";
import type { InstallPlan } from "../service.ts";
import { elapsedSeconds, LaunchdService, parseJob } from "./launchd-service.ts";
import { agentPlist } from "./plist.ts";

/** Loads, ends and describes one job, as launchctl of macOS 13 does. The PID is that of the test. */
const LAUNCHCTL = `
describe() {
  printf '%s = {\\n\\tactive count = 1\\n\\tstate = %s\\n\\n\\tenvironment = {\\n\\t\\tstate = other\\n\\t}\\n' "$1" "$(cat $STATE/loaded)"
  printf '\\truns = 3\\n\\tpid = ${process.pid}\\n\\tlast exit code = 1\\n}\\n'
}
case "$1" in
  print) case "$2" in
    gui/501) [ ! -e $STATE/logged-out ] ;;
    *) [ -e $STATE/loaded ] && describe "$2" || { echo "Could not find service" >&2; exit 113; } ;;
  esac ;;
  print-disabled) printf 'disabled services = {\\n'; [ ! -e $STATE/disabled ] || printf '\\t"devplat.agent" => disabled\\n'; echo '}' ;;
  enable) rm -f $STATE/disabled ;;
  bootstrap)
    if [ -e $STATE/busy ]; then rm $STATE/busy; echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; fi
    [ -e "$3" ] && echo running >$STATE/loaded ;;
  kickstart) echo running >$STATE/loaded ;;
  bootout) rm -f $STATE/loaded ;;
esac`;

const PROGRAM = "/opt/homebrew/bin/agent & <co>";
const PLAN: InstallPlan = {
  command: [PROGRAM],
  variables: {},
  sockets: new Map(),
  force: false,
  dryRun: false,
};

describe("the service of launchd, with a stand-in for launchctl", () => {
  let programs: RecordingPrograms;
  let service: LaunchdService;
  let path = "";
  beforeEach(async () => {
    programs = await recordingPrograms();
    await programs.add("launchctl", LAUNCHCTL);
    service = new LaunchdService({ home: programs.folder, environment: programs.environment, userId: 501 });
    path = join(programs.folder, "Library/LaunchAgents/devplat.agent.plist");
  });
  afterEach(async () => programs[Symbol.asyncDispose]());

  const changes = async (): Promise<string[]> =>
    (await programs.calls())
      .filter((call) => !call.startsWith("launchctl print"))
      .map((call) => call.replaceAll(programs.folder, "~"));

  it("install writes the file and loads the job; a second one changes nothing", async () => {
    assert.deepEqual((await service.install({ ...PLAN, dryRun: true })).actions, ["loaded devplat.agent"]);
    assert.deepEqual(await changes(), []);
    const { files, actions } = await service.install(PLAN);
    assert.deepEqual(files, [{ path, outcome: "written" }]);
    assert.deepEqual(actions, ["loaded devplat.agent"]);
    assert.deepEqual(await changes(), [
      "launchctl bootstrap gui/501 ~/Library/LaunchAgents/devplat.agent.plist",
    ]);
    assert.equal(isUnedited(await readFile(path, "utf8")), true);
    // The process of this test, which the stand-in names, is older than the file.
    await service.install(PLAN);
    await changes();
    const state = await service.state();
    assert.deepEqual(
      { ...state, since: null },
      {
        installed: true,
        enabled: true,
        active: "active",
        pid: process.pid,
        since: null,
        restarts: 2,
        last_exit: "exit code 1",
        files: [{ path, outcome: "unchanged" }],
        sockets: [],
        problems: [],
      },
    );
    assert.ok(Math.abs(Date.parse(state.since ?? "") - (Date.now() - process.uptime() * 1000)) < 5000);
  });

  it("another program, and a file newer than the daemon, load the job again", async () => {
    await service.install(PLAN);
    await changes();
    await programs.set("busy", "");
    const { files, actions } = await service.install({ ...PLAN, command: ["/usr/local/bin/agent"] });
    assert.deepEqual([files[0]?.outcome, actions], ["replaced", ["restarted devplat.agent"]]);
    const load = "launchctl bootstrap gui/501 ~/Library/LaunchAgents/devplat.agent.plist";
    assert.deepEqual(await changes(), ["launchctl bootout gui/501/devplat.agent", load, load]);
  });

  it("a job that has ended or was disabled is started again", async () => {
    await service.install(PLAN);
    await programs.set("loaded", "exited");
    await programs.set("disabled", "");
    assert.deepEqual((await service.state()).problems, ["devplat.agent is disabled"]);
    await programs.add("ps", "echo 00:00");
    await changes();
    assert.deepEqual((await service.install(PLAN)).actions, [
      "enabled devplat.agent",
      "started devplat.agent",
    ]);
    assert.deepEqual((await changes()).slice(0, 1), ["launchctl enable gui/501/devplat.agent"]);
    assert.deepEqual((await service.install(PLAN)).actions, []);
  });

  it("an edited file stays until --force, and remove leaves it", async () => {
    await service.install(PLAN);
    const edited = (await readFile(path, "utf8")).replace("<integer>10</integer>", "<integer>60</integer>");
    await writeFile(path, edited);
    assert.equal((await service.install(PLAN)).files[0]?.outcome, "kept");
    assert.equal(await readFile(path, "utf8"), edited);
    const removed = await service.remove({ dryRun: false });
    assert.equal(removed.files[0]?.outcome, "kept");
    assert.match(removed.notes.join(), /starts the daemon at the next login/);
    const [file] = (await service.install({ ...PLAN, force: true })).files;
    assert.equal(await readFile(file?.backup ?? "", "utf8"), edited);
  });

  it("remove ends the job and removes the file, and can be repeated", async () => {
    await service.install(PLAN);
    await changes();
    assert.deepEqual(await service.remove({ dryRun: false }), {
      files: [{ path, outcome: "removed" }],
      actions: ["stopped devplat.agent"],
      notes: [],
    });
    assert.deepEqual(await changes(), ["launchctl bootout gui/501/devplat.agent"]);
    assert.deepEqual(await service.remove({ dryRun: false }), { files: [], actions: [], notes: [] });
    assert.equal((await service.state()).installed, false);
  });

  it("root, and a user without a session at the screen, are refused", async () => {
    const { folder: home, environment } = programs;
    await service.check();
    await programs.set("logged-out", "");
    await assert.rejects(service.check(), { code: "service_refused", message: /no session at the screen/ });
    await assert.rejects(new LaunchdService({ home, environment, userId: 0 }).check(), {
      message: /this is root/,
    });
  });
});

describe("the property list of launchd", () => {
  it("is read by another reader with the values that were meant", () => {
    const text = agentPlist({
      label: "devplat.agent",
      command: [PROGRAM, "ä\n"],
      variables: { AGENT_NODE: "/n" },
      log: "/l",
    });
    const script = "import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";
    const read = JSON.parse(execFileSync("python3", ["-c", script], { input: text }).toString()) as unknown;
    assert.deepEqual(read, {
      Label: "devplat.agent",
      ProgramArguments: [PROGRAM, "ä\n", "run"],
      EnvironmentVariables: {
        PATH: "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        AGENT_NODE: "/n",
      },
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
      ThrottleInterval: 10,
      ExitTimeOut: 90,
      HardResourceLimits: { Core: 0 },
      SoftResourceLimits: { Core: 0 },
      StandardOutPath: "/l",
      StandardErrorPath: "/l",
    });
  });

  it("refuses a path that XML cannot hold", () => {
    const parts = { label: "l", command: ["/a\u0001b"], variables: {}, log: "/l" };
    assert.throws(() => agentPlist(parts), { code: "service_refused" });
  });
});

describe("output of launchctl and ps", () => {
  it("a job that was killed, and one that never ended", () => {
    const job = "x = {\n\tstate = running\n\tpid = 7\n\truns = 1\n\tlast exit code = (never exited)\n}\n";
    assert.deepEqual(parseJob(job), { state: "running", pid: 7, runs: 1, lastExit: null });
    const killed = "x = {\n\tstate = not running\n\tlast terminating signal = Killed: 9\n}\n";
    assert.deepEqual(parseJob(killed), {
      state: "not running",
      pid: null,
      runs: null,
      lastExit: "signal Killed: 9",
    });
  });

  const times: [text: string, seconds: number | undefined][] = [
    ["00:05", 5],
    ["59:59", 3599],
    ["01:00:00", 3600],
    ["02-03:04:05", 183_845],
    ["", undefined],
  ];
  for (const [text, seconds] of times)
    it(`the time ${text || "(none)"} is ${seconds} seconds`, () =>
      assert.equal(elapsedSeconds(text), seconds));
});
