import { printResult } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import { loadConfig } from "../config/load.ts";
import { apiSocketPath } from "../surfaces/socket/places.ts";
import { requestOpenLink } from "../surfaces/socket/open-link.ts";
import type { RunCommand } from "./common/command.ts";
import { hostOf, openContext } from "./common/context.ts";
import type { Host } from "../host.ts";
import { BRAND } from "../brand.ts";
import { AgentError } from "../errors.ts";
import { WriterLock } from "../sync/lock.ts";
import { writeAtomically } from "@devplat/base";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { ensureFolder } from "../agent-files/places.ts";

/** Asks the running daemon for a link into its web UI. */
export const open: RunCommand = async (invocation) => {
  const { places } = hostOf(invocation);
  // The daemon runs with a configuration that was good; one that has been broken since does not matter here.
  const loaded = await loadConfig(places, invocation.flags.config).catch(() => undefined);
  const socketPath = apiSocketPath(places, loaded?.config.api);
  const link = await requestOpenLink(places.runtime, socketPath);
  printResult(invocation.options, { url: link }, () => printLine(link));
  return 0;
};

/** Checks the configuration and has the running daemon read it again. */
export const reload: RunCommand = async (invocation) => {
  const { host } = await openContext(invocation);
  if (invocation.flags.dryRun) {
    printLine("the configuration is valid; the daemon was not told");
    return 0;
  }
  if (!(await signalDaemon(host))) {
    throw new AgentError("daemon_unreachable", "no daemon of this user is running", {
      hint: `'${BRAND.command} run' starts one; it reads the configuration then.`,
    });
  }
  printLine(`the daemon reads its configuration again; '${BRAND.command} status' shows what it made of it`);
  return 0;
};

/** Tells the running daemon to read everything again. Gives false if there is none. */
export async function signalDaemon(host: Host): Promise<boolean> {
  if (!(await isDaemonRunning(host))) return false;
  const pid = await new DaemonPid(host.places.runtime).read();
  if (pid === undefined) return false;
  try {
    process.kill(pid, "SIGHUP");
    return true;
  } catch {
    return false;
  }
}

/** A process id alone proves nothing: numbers are used again. The lock ends with its process. */
export async function isDaemonRunning(host: Host): Promise<boolean> {
  try {
    using lock = await WriterLock.acquire(host.places.state, 0);
    host.logger.debug({ lock: lock.path }, "the lock is free");
    return false;
  } catch (error) {
    if (error instanceof AgentError && error.code === "locked") return true;
    throw error;
  }
}

/** The running daemon's process id, for `agent reload`. Believed only while the writer lock is held. */
export class DaemonPid {
  readonly #folder: string;

  /** @param runtime the runtime folder */
  constructor(runtime: string) {
    this.#folder = runtime;
  }

  async publish(): Promise<void> {
    await ensureFolder(this.#folder);
    await writeAtomically(this.#path(), `${process.pid}\n`);
  }

  async withdraw(): Promise<void> {
    if ((await this.read()) === process.pid) await rm(this.#path(), { force: true });
  }

  async read(): Promise<number | undefined> {
    const text = await readFile(this.#path(), "utf8").catch(() => "");
    return /^[1-9]\d{0,9}\n$/.test(text) ? Number(text) : undefined;
  }

  #path(): string {
    return join(this.#folder, "daemon.pid");
  }
}
