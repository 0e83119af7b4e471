import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pollUntil, writeAtomically } from "@devplat/base";
import { z } from "zod";
import { readOwnFile } from "../../agent-files/own-file.ts";
import { ensureFolder } from "../../agent-files/places.ts";
import { BRAND } from "../../brand.ts";
import { lastErrorLine, runTool, type ProgramResult } from "../../platform/run-tool.ts";
import { Actions } from "../actions.ts";
import { backupStamp } from "../generated-file.ts";
import {
  serviceFailed,
  type ChangeReport,
  type FileReport,
  type InstallPlan,
  type Service,
  type ServiceState,
} from "../service.ts";
import { TASK_MARK, taskFile, taskXml } from "./task-xml.ts";

/** Results of a task in place of exit codes (winerror.h, SCHED_S_…). */
const TASK_RUNNING = 0x4_13_01;
const TASK_NOT_YET_RUN = 0x4_13_03;
const TASK_ENDED_BY_USER = 0x4_13_06;
/** Column of the last result in the verbose list. The headings are in the language of the system. */
const RESULT_COLUMN = 6;
/** A task ends within this time. In milliseconds. */
const END_TIMEOUT_MS = 20_000;
const WAIT_MS = 200;

/** Checksums of the definition that was asked for, and of the one that the Task Scheduler then gave back in its own form. */
const recordSchema = z.object({ wanted: z.string(), registered: z.string().nullable() });
type Registration = z.infer<typeof recordSchema>;

export interface TaskServiceParts {
  readonly home: string;
  readonly state: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly username: string;
  /** PID of the running daemon. */
  readonly daemonPid: () => Promise<number | undefined>;
  /** Ends a process. */
  readonly kill: (pid: number) => void;
}

/** The daemon as a task of the Windows Task Scheduler. */
export class ScheduledTask implements Service {
  readonly manager = "Task Scheduler";
  readonly #parts: TaskServiceParts;
  readonly #name: string;
  readonly #record: string;

  constructor(parts: TaskServiceParts) {
    this.#parts = parts;
    // All users share one list of tasks.
    this.#name = `${BRAND.command}-${parts.username}`;
    this.#record = join(parts.state, "service-task.json");
  }

  async check(): Promise<void> {
    // schtasks.exe is part of Windows, and every user may make tasks.
  }

  async state(): Promise<ServiceState> {
    const xml = await this.#query();
    const result = xml === undefined ? undefined : await this.#lastResult();
    const isRunning = result === TASK_RUNNING;
    const pid = isRunning ? ((await this.#parts.daemonPid()) ?? null) : null;
    const isEnabled = xml !== undefined && !isDisabled(xml);
    return {
      installed: xml !== undefined,
      enabled: isEnabled,
      active: isRunning ? "active" : "inactive",
      pid,
      since: null,
      restarts: null,
      last_exit: exitOf(result),
      files: xml === undefined ? [] : [this.#report((await this.#isEdited(xml)) ? "kept" : "unchanged")],
      sockets: [],
      problems: xml === undefined || isEnabled ? [] : [`the task ${this.#name} is disabled`],
    };
  }

  async install({ command, force, dryRun }: InstallPlan): Promise<ChangeReport> {
    const { home, username, environment } = this.#parts;
    const domain = environment["USERDOMAIN"] ?? "";
    const account = domain === "" ? username : `${domain}\\${username}`;
    const wanted = taskXml({ account, command, home });
    const actions = new Actions({ dryRun });
    const before = await this.#query();
    if (before !== undefined && isDisabled(before)) {
      await actions.take(`enabled ${this.#name}`, async () =>
        this.#must("/Change", "/TN", this.#name, "/ENABLE"),
      );
    }
    const file = await this.#define(wanted, { force, dryRun });
    const isRunning = before !== undefined && (await this.#lastResult()) === TASK_RUNNING;
    const run = async (): Promise<void> => this.#must("/Run", "/TN", this.#name);
    if (isRunning && file.outcome === "replaced") {
      await actions.take(`restarted ${this.#name}`, async () => {
        await this.#end();
        await run();
      });
    } else if (!isRunning) await actions.take(`started ${this.#name}`, run);
    return {
      files: [file],
      actions: actions.texts,
      notes: [`The Task Scheduler shows it as ${this.#name}.`],
    };
  }

  async remove({ dryRun }: { readonly dryRun: boolean }): Promise<ChangeReport> {
    const xml = await this.#query();
    if (xml === undefined) {
      if (!dryRun) await rm(this.#record, { force: true });
      return { files: [], actions: [], notes: [] };
    }
    const actions = new Actions({ dryRun });
    if ((await this.#lastResult()) === TASK_RUNNING)
      await actions.take(`stopped ${this.#name}`, async () => this.#end());
    if (await this.#isEdited(xml)) {
      if (!isDisabled(xml)) {
        await actions.take(`disabled ${this.#name}`, async () =>
          this.#must("/Change", "/TN", this.#name, "/DISABLE"),
        );
      }
      return { files: [this.#report("kept")], actions: actions.texts, notes: [] };
    }
    if (!dryRun) {
      await this.#must("/Delete", "/TN", this.#name, "/F");
      await rm(this.#record, { force: true });
    }
    return { files: [this.#report("removed")], actions: actions.texts, notes: [] };
  }

  /** Registers the definition, unless it is registered, or the user has changed the one that is. */
  async #define(
    wanted: string,
    { force, dryRun }: { readonly force: boolean; readonly dryRun: boolean },
  ): Promise<FileReport> {
    const found = await this.#query();
    if (found !== undefined) {
      const record = await this.#readRecord();
      const isEdited = await this.#isEdited(found);
      if (isEdited && !force) return this.#report("kept");
      const isComplete = record !== undefined && record.registered !== null;
      if (!isEdited && isComplete && record.wanted === digestOf(wanted)) return this.#report("unchanged");
      const outcome = "replaced";
      if (dryRun) return this.#report(outcome);
      const backup = isEdited ? await this.#backUp(found) : undefined;
      await this.#register(wanted);
      return { ...this.#report(outcome), ...(backup !== undefined && { backup }) };
    }
    if (!dryRun) await this.#register(wanted);
    return this.#report("written");
  }

  async #register(wanted: string): Promise<void> {
    const { state } = this.#parts;
    const file = join(state, "service-task.xml");
    await ensureFolder(state);
    // If this process is killed now, the next run knows that the task is its own.
    await this.#writeRecord({ wanted: digestOf(wanted), registered: null });
    await writeAtomically(file, taskFile(wanted));
    try {
      await this.#must("/Create", "/TN", this.#name, "/XML", file, "/F");
    } finally {
      await rm(file, { force: true });
    }
    const registered = await this.#query();
    if (registered !== undefined)
      await this.#writeRecord({ wanted: digestOf(wanted), registered: digestOf(registered) });
  }

  /** Whether the task is not the one that {@link install} has registered. Being disabled does not count. */
  async #isEdited(xml: string): Promise<boolean> {
    const record = await this.#readRecord();
    if (record === undefined) return true;
    if (record.registered === null) return !xml.includes(TASK_MARK);
    return ![xml, enabledForm(xml)].map(digestOf).includes(record.registered);
  }

  /** Ends the task. Its daemon is a child of the program that the task has started, and may outlive that. */
  async #end(): Promise<void> {
    const pid = await this.#parts.daemonPid();
    await this.#must("/End", "/TN", this.#name);
    const result = await pollUntil(
      async () => this.#lastResult(),
      (last) => last !== TASK_RUNNING,
      { limitMs: END_TIMEOUT_MS, intervalMs: WAIT_MS },
    );
    if (result === TASK_RUNNING)
      throw serviceFailed(`The task ${this.#name} does not end`, "End it in the Task Scheduler.");
    if (pid !== undefined && (await this.#parts.daemonPid()) === pid) this.#parts.kill(pid);
  }

  /** The definition of the task in the scheduler's own form; undefined if there is none. */
  async #query(): Promise<string | undefined> {
    const { code, stdout } = await this.#run("/Query", "/TN", this.#name, "/XML");
    // It may be UTF-16.
    return code === 0 ? stdout.replaceAll("\0", "").trim() : undefined;
  }

  async #lastResult(): Promise<number | undefined> {
    const { stdout } = await this.#run("/Query", "/TN", this.#name, "/V", "/FO", "CSV", "/NH");
    const [line = ""] = stdout.replaceAll("\0", "").trim().split(/\r?\n/);
    const cells = [...line.matchAll(/"((?:[^"]|"")*)"(?:,|$)/g)].map(([, cell]) => cell);
    const text = cells[RESULT_COLUMN] ?? "";
    return /^-?\d+$/.test(text) ? Number(text) : undefined;
  }

  #report(outcome: FileReport["outcome"]): FileReport {
    return { path: `\\${this.#name}`, outcome };
  }

  async #readRecord(): Promise<Registration | undefined> {
    const text = (await readOwnFile(this.#record))?.toString();
    if (text === undefined) return undefined;
    try {
      return recordSchema.safeParse(JSON.parse(text)).data;
    } catch {
      return undefined;
    }
  }

  async #writeRecord(record: Registration): Promise<void> {
    await writeAtomically(this.#record, `${JSON.stringify(record)}\n`);
  }

  async #backUp(xml: string): Promise<string> {
    const path = join(this.#parts.state, `service-task.${backupStamp()}.backup.xml`);
    await writeAtomically(path, taskFile(xml));
    return path;
  }

  async #must(...args: readonly string[]): Promise<void> {
    const result = await this.#run(...args);
    if (result.code === 0) return;
    throw serviceFailed(
      `'schtasks ${args.join(" ")}' failed: ${lastErrorLine(result)}`,
      "Look at the task in the Task Scheduler (taskschd.msc).",
    );
  }

  async #run(...args: readonly string[]): Promise<ProgramResult> {
    return runTool("schtasks.exe", args, { environment: this.#parts.environment });
  }
}

/** Settings come after the triggers, which have a switch of their own. */
function isDisabled(xml: string): boolean {
  return /<Settings>[\s\S]*<Enabled>\s*false\s*<\/Enabled>[\s\S]*<\/Settings>/.test(xml);
}

function enabledForm(xml: string): string {
  return xml.replace(/(<Settings>[\s\S]*<Enabled>\s*)false(\s*<\/Enabled>)/, "$1true$2");
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function exitOf(result: number | undefined): string | null {
  if (result === undefined || result === TASK_RUNNING || result === TASK_NOT_YET_RUN) return null;
  return result === TASK_ENDED_BY_USER ? "ended by the user" : `exit code ${result}`;
}
