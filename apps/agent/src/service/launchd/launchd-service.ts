import { mkdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ifExists, pollUntil, removeLeftovers } from "@devplat/base";
import { BRAND } from "../../brand.ts";
import { lastErrorLine, runTool, type ProgramResult } from "../../platform/run-tool.ts";
import { Actions } from "../actions.ts";
import { readGenerated, removeGenerated, writeGenerated } from "../generated-file.ts";
import {
  serviceFailed,
  serviceRefused,
  type ChangeReport,
  type InstallPlan,
  type Service,
  type ServiceState,
} from "../service.ts";
import { agentPlist } from "./plist.ts";

/** Name of the job. */
export const LABEL = `devplat.${BRAND.command}`;
/** The daemon may need this long for its end (ExitTimeOut), in milliseconds. */
const END_TIMEOUT_MS = 100_000;
/** launchd refuses to load a job again for a moment after it has ended. In milliseconds. */
const LOAD_TIMEOUT_MS = 10_000;
const WAIT_MS = 200;
/** Changes of launchd end immediately, but wait for the daemon. In milliseconds. */
const CALL_TIMEOUT_MS = 120_000;

export interface LaunchdParts {
  readonly home: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly userId: number;
}

/** A loaded job, as `launchctl print` describes it. */
interface Job {
  readonly state: string;
  readonly pid: number | null;
  readonly runs: number | null;
  readonly lastExit: string | null;
}

/** The daemon as a launch agent of macOS. */
export class LaunchdService implements Service {
  readonly manager = "launchd";
  readonly #environment: NodeJS.ProcessEnv;
  readonly #userId: number;
  readonly #domain: string;
  readonly #target: string;
  readonly #path: string;
  readonly #log: string;

  constructor({ home, environment, userId }: LaunchdParts) {
    this.#environment = environment;
    this.#userId = userId;
    this.#domain = `gui/${userId}`;
    this.#target = `${this.#domain}/${LABEL}`;
    this.#path = join(home, "Library/LaunchAgents", `${LABEL}.plist`);
    this.#log = join(home, "Library/Logs", BRAND.folder, `${BRAND.command}.log`);
  }

  async check(): Promise<void> {
    if (this.#userId === 0) {
      throw serviceRefused(
        "Cannot make a service: this is root",
        "Run it without sudo, as the user whose files the daemon keeps.",
      );
    }
    if ((await this.#run("print", this.#domain)).code === 0) return;
    throw serviceRefused(
      `Cannot make a service: user ${this.#userId} has no session at the screen of this Mac`,
      "Log in there first, and run it in a terminal.",
    );
  }

  async state(): Promise<ServiceState> {
    const file = await readGenerated(this.#path);
    const job = await this.#job();
    const isDisabled = await this.#isDisabled();
    const installed = file.state !== "missing";
    const problems = isDisabled && installed ? [`${LABEL} is disabled`] : [];
    if (installed && job === undefined)
      problems.push(`${this.#path} is not loaded: run '${BRAND.command} service install'`);
    return {
      installed: installed || job !== undefined,
      enabled: installed && !isDisabled,
      active: job === undefined ? "inactive" : job.state === "running" ? "active" : job.state,
      pid: job?.pid ?? null,
      since: (await this.#startTime(job)) ?? null,
      restarts: job === undefined || job.runs === null ? null : Math.max(0, job.runs - 1),
      last_exit: job?.lastExit ?? null,
      files: installed ? [{ path: this.#path, outcome: file.state === "edited" ? "kept" : "unchanged" }] : [],
      sockets: [],
      problems,
    };
  }

  async install({ command, variables, force, dryRun }: InstallPlan): Promise<ChangeReport> {
    const wanted = agentPlist({ label: LABEL, command, variables, log: this.#log });
    if (!dryRun) {
      await mkdir(dirname(this.#log), { recursive: true, mode: 0o700 });
      await removeLeftovers([this.#path]);
    }
    const file = await writeGenerated(this.#path, wanted, { force, dryRun });
    const job = await this.#job();
    const actions = new Actions({ dryRun });
    if (await this.#isDisabled())
      await actions.take(`enabled ${LABEL}`, async () => this.#must("enable", this.#target));
    if (job === undefined) await actions.take(`loaded ${LABEL}`, async () => this.#load());
    else if (file.outcome === "replaced" || (await this.#isOutdated(job))) {
      await actions.take(`restarted ${LABEL}`, async () => {
        await this.#unload();
        await this.#load();
      });
    } else if (job.state !== "running")
      await actions.take(`started ${LABEL}`, async () => this.#must("kickstart", this.#target));
    return { files: [file], actions: actions.texts, notes: [`Its log is ${this.#log}.`] };
  }

  async remove({ dryRun }: { readonly dryRun: boolean }): Promise<ChangeReport> {
    const actions = new Actions({ dryRun });
    if ((await this.#job()) !== undefined) await actions.take(`stopped ${LABEL}`, async () => this.#unload());
    const file = await removeGenerated(this.#path, dryRun);
    if (!dryRun) await removeLeftovers([this.#path]);
    const notes =
      file?.outcome === "kept"
        ? [`${this.#path} starts the daemon at the next login. Remove it, or move it away.`]
        : [];
    return { files: file === undefined ? [] : [file], actions: actions.texts, notes };
  }

  async #load(): Promise<void> {
    const load = ["bootstrap", this.#domain, this.#path];
    const result = await pollUntil(
      async () => this.#run(...load),
      ({ code }) => code === 0,
      { limitMs: LOAD_TIMEOUT_MS, intervalMs: WAIT_MS },
    );
    if (result.code !== 0) throw failed(load, result);
  }

  /** Ends the job, and waits until launchd has forgotten it. */
  async #unload(): Promise<void> {
    const result = await this.#run("bootout", this.#target);
    const job = await pollUntil(
      async () => this.#job(),
      (found) => found === undefined,
      { limitMs: END_TIMEOUT_MS, intervalMs: WAIT_MS },
    );
    if (job !== undefined) throw failed(["bootout", this.#target], result);
  }

  async #job(): Promise<Job | undefined> {
    const { code, stdout } = await this.#run("print", this.#target);
    return code === 0 ? parseJob(stdout) : undefined;
  }

  async #isDisabled(): Promise<boolean> {
    const { stdout } = await this.#run("print-disabled", this.#domain);
    return new RegExp(`"${LABEL.replaceAll(".", "\\.")}" => (?:disabled|true)`).test(stdout);
  }

  /** Whether the daemon began before its file was written: a run of this command was killed between. */
  async #isOutdated(job: Job): Promise<boolean> {
    const started = await this.#startTime(job);
    const file = await ifExists(stat(this.#path));
    return started !== undefined && file !== undefined && file.mtimeMs > Date.parse(started);
  }

  /** Up to a second after the start, as ps counts whole seconds. */
  async #startTime(job: Job | undefined): Promise<string | undefined> {
    if (job === undefined || job.pid === null) return undefined;
    const { stdout } = await runTool("ps", ["-o", "etime=", "-p", String(job.pid)], {
      environment: this.#environment,
    });
    const seconds = elapsedSeconds(stdout.trim());
    return seconds === undefined ? undefined : new Date(Date.now() - seconds * 1000).toISOString();
  }

  async #must(...args: readonly string[]): Promise<void> {
    const result = await this.#run(...args);
    if (result.code !== 0) throw failed(args, result);
  }

  async #run(...args: readonly string[]): Promise<ProgramResult> {
    return runTool("launchctl", args, { environment: this.#environment, timeoutMs: CALL_TIMEOUT_MS });
  }
}

function failed(args: readonly string[], result: ProgramResult): Error {
  return serviceFailed(
    `'launchctl ${args.join(" ")}' failed: ${lastErrorLine(result)}`,
    `'launchctl print' with the name of the job, ${LABEL}, may tell more.`,
  );
}

/** Reads what is one level deep; blocks inside have keys with the same names. */
export function parseJob(text: string): Job {
  const value = (key: string): string | undefined => new RegExp(`^\\t${key} = (.*)$`, "m").exec(text)?.[1];
  const count = (key: string): number | null => {
    const found = value(key);
    return found !== undefined && /^\d+$/.test(found) ? Number(found) : null;
  };
  const signal = value("last terminating signal");
  const code = value("last exit code");
  const wasEnded = code !== undefined && !code.includes("never");
  return {
    state: value("state") ?? "unknown",
    pid: count("pid"),
    runs: count("runs"),
    lastExit: signal === undefined ? (wasEnded ? `exit code ${code}` : null) : `signal ${signal}`,
  };
}

/** Seconds of a time such as `02-03:04:05` or `04:05` (ps(1), etime). */
export function elapsedSeconds(text: string): number | undefined {
  const [, days = 0, hours = 0, minutes, seconds] = /^(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)$/.exec(text) ?? [];
  if (minutes === undefined || seconds === undefined) return undefined;
  return ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
}
