import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { platformOf } from "../platform/platform.ts";
import { installedProgram, type RunningProgram } from "./program-path.ts";

const linux = platformOf("linux");

describe("the program that a service starts", () => {
  let folder = "";
  before(async () => {
    // Not in a temporary folder, which is refused.
    await mkdir(join(homedir(), ".cache"), { recursive: true });
    folder = await mkdtemp(join(homedir(), ".cache", "agent-program-test-"));
  });
  after(async () => rm(folder, { recursive: true }));

  const file = async (path: string): Promise<string> => {
    const full = join(folder, path);
    await mkdir(dirname(full), { recursive: true });
    await writeFile(full, "");
    await chmod(full, 0o755);
    return full;
  };
  const running = (given: Partial<RunningProgram>): RunningProgram => ({
    platform: linux,
    environment: {},
    isSingleFile: false,
    execPath: process.execPath,
    script: undefined,
    ...given,
  });

  it("is the link in PATH that an upgrade changes, and not the folder of the version", async () => {
    const execPath = await file("Cellar/agent/1.0/agent");
    await mkdir(join(folder, "bin"));
    const link = join(folder, "bin/agent");
    await symlink("../Cellar/agent/1.0/agent", link);
    const single = running({ isSingleFile: true, execPath });
    assert.deepEqual(await installedProgram(single), { command: [execPath], variables: {} });
    const other = await file("other/agent");
    const environment = { PATH: `relative:${dirname(other)}:${dirname(link)}` };
    assert.deepEqual((await installedProgram({ ...single, environment })).command, [link]);
  });

  it("is the launcher of the sources or of a release folder, which gets its Node", async () => {
    const script = await file("sources/src/main.ts");
    const launcher = await file("sources/bin/agent");
    assert.deepEqual(await installedProgram(running({ script })), { command: [launcher], variables: {} });
    const bundle = await file("release/agent.cjs");
    const released = await file("release/agent");
    assert.deepEqual(await installedProgram(running({ script: bundle })), {
      command: [released],
      variables: { AGENT_NODE: process.execPath },
    });
  });

  const refused: [name: string, path: string, reason: RegExp][] = [
    ["npx", ".npm/_npx/01ab/node_modules/agent/agent", /downloaded for one run/],
    ["pnpm dlx", ".cache/pnpm/dlx/01ab/agent", /downloaded for one run/],
  ];
  for (const [name, path, reason] of refused) {
    it(`is refused in the folder of ${name}`, async () => {
      const execPath = await file(path);
      await assert.rejects(installedProgram(running({ isSingleFile: true, execPath })), {
        code: "service_refused",
        message: reason,
      });
    });
  }

  it("is refused in temporary folders of each system", async () => {
    for (const [system, execPath, environment] of [
      ["linux", "/tmp/agent", {}],
      ["linux", "/var/tmp/x/agent", {}],
      ["darwin", "/private/var/folders/ab/T/AppTranslocation/agent", {}],
      ["darwin", "/Volumes/Agent/agent", {}],
      [
        "win32",
        "C:\\Users\\Ada\\AppData\\Local\\Temp\\agent.exe",
        { TEMP: "c:\\users\\ada\\appdata\\local\\temp" },
      ],
    ] as const) {
      const given = running({ platform: platformOf(system), isSingleFile: true, execPath, environment });
      await assert.rejects(installedProgram(given), { message: /that is a temporary folder/ }, execPath);
    }
  });

  it("is refused when its file is gone", async () => {
    const execPath = join(folder, "gone/agent");
    await assert.rejects(installedProgram(running({ isSingleFile: true, execPath })), {
      message: /it is not there any more/,
    });
  });
});
