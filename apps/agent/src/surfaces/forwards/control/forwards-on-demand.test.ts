import assert from "node:assert/strict";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createLogger, systemClock } from "@devplat/base";
import { tempFolder, until, type TempFolder } from "@devplat/testkit";
import type { Config } from "../../../config/schema.ts";
import { ForwardError } from "../errors/forward-error.ts";
import type { NewRemote } from "../remote-control.ts";
import { ForwardsOnDemand, type BuiltForwards } from "./forwards-on-demand.ts";

const signal = new AbortController().signal;
const NEW: NewRemote = { host: "build", settings: {}, hostKey: undefined, accepted: [], force: true };

describe("ForwardsOnDemand", () => {
  let folder: TempFolder;
  let file: string;
  /** Methods of the built forwards that were called. */
  let calls: string[];
  let builds: number;
  let hasLeftovers: boolean;
  let fault: Error | undefined;
  let log: string[];
  let forwards: ForwardsOnDemand;
  beforeEach(async () => {
    folder = await tempFolder("on-demand");
    file = join(folder.path, "ssh.yaml");
    [calls, builds, hasLeftovers, fault, log] = [[], 0, false, undefined, []];
    const note = (name: string) => async (): Promise<void> => void calls.push(name);
    forwards = new ForwardsOnDemand({
      file,
      hasLeftovers: async () => hasLeftovers,
      build: async () => {
        builds += 1;
        if (fault !== undefined) throw fault;
        return {
          remotes: { onChange: () => undefined, list: () => [], reload: note("reload"), add: note("add") },
          surface: {
            start: note("start"),
            reconcile: note("reconcile"),
            status: () => ({ remotes: [] }),
            stop: note("stop"),
          },
        } as unknown as BuiltForwards;
      },
      clock: systemClock,
      logger: createLogger({ format: "json", destination: { write: (line) => void log.push(line) } }),
    });
  });
  afterEach(async () => {
    await forwards.stop();
    await folder.remove();
  });

  it("loads nothing without ssh.yaml, and has no remote then", async () => {
    await forwards.start();
    await forwards.reconcile({} as Config);
    assert.equal(builds, 0);
    assert.deepEqual([forwards.list(), forwards.fileProblem(), forwards.status()], [[], undefined, {}]);
    for (const change of [() => forwards.get("build"), () => forwards.retry("build")]) {
      assert.throws(change, (error) => error instanceof ForwardError && error.code === "host_unknown");
    }
    await assert.rejects(forwards.edit("build", {}), ForwardError);
    await forwards.stop();
    assert.deepEqual(calls, []);
  });

  it("concurrent additions load it once", async () => {
    await forwards.start();
    await Promise.all([forwards.add(NEW, signal), forwards.add(NEW, signal)]);
    assert.equal(builds, 1);
    assert.deepEqual(calls, ["start", "add", "add"]);
  });

  it("starts with a file that is there, or with something that was left", async () => {
    hasLeftovers = true;
    await forwards.start();
    assert.deepEqual(calls, ["start"]);
    await forwards.reconcile({} as Config);
    await forwards.stop();
    assert.deepEqual(calls, ["start", "reconcile", "stop"]);
  });

  it("a file that appears starts it, and a change of the file is taken up", async () => {
    await forwards.start();
    await writeFile(file, "remotes: []\n");
    await until(() => calls.includes("start"));
    await writeFile(file, "remotes: [] # changed\n");
    await until(() => calls.includes("reload"));
    const before = calls.length;
    await rm(file);
    await until(() => calls.length > before);
    assert.equal(builds, 1);
  });

  it("a link is followed: its target may change elsewhere, and it may lead elsewhere", async () => {
    const reloaded = async (change: () => Promise<void>): Promise<void> => {
      const before = calls.length;
      await change();
      await until(() => calls.length > before);
    };
    for (const name of ["one", "two"]) await mkdir(join(folder.path, name));
    const [one, two] = [join(folder.path, "one/ssh.yaml"), join(folder.path, "two/ssh.yaml")];
    await symlink("one/ssh.yaml", file);
    await forwards.start();
    assert.equal(builds, 0);
    await reloaded(() => writeFile(one, "remotes: []\n"));
    assert.deepEqual(calls, ["start"]);
    await writeFile(two, "remotes: [] # two\n");
    await reloaded(async () => {
      await symlink("two/ssh.yaml", `${file}.new`);
      await rename(`${file}.new`, file);
    });
    await reloaded(() => writeFile(two, "remotes: [] # changed\n"));
    assert.equal(builds, 1);
  });

  it("a start that fails is logged, and tried again by the next addition", async () => {
    await writeFile(file, "remotes: []\n");
    fault = new Error("no memory");
    await forwards.start();
    assert.match(log.join("\n"), /could not be started/);
    await assert.rejects(forwards.add(NEW, signal), /no memory/);
    fault = undefined;
    await forwards.add(NEW, signal);
    assert.deepEqual(calls, ["start", "add"]);
  });

  it("nothing starts after the end", async () => {
    await forwards.start();
    await forwards.stop();
    await assert.rejects(forwards.add(NEW, signal));
    assert.equal(builds, 0);
  });
});
