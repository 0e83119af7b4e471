import { ifExists, writeAtomically } from "@devplat/base";
import { readProcess } from "@devplat/base/process-record";
import { signalProcess } from "@devplat/base/process-signal";
import { randomBytes } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { ensureFolder } from "../../../agent-files/places.ts";
import type { SshProgram } from "./ssh-program.ts";

/** A master that runs answers immediately. In milliseconds. */
const EXIT_TIMEOUT_MS = 2000;
const CONTROL = ".ctl";
const RECORD = ".pid";

const recordSchema = z.object({ pid: z.int().min(2), started: z.string().min(1) });

/** Paths of one connection's files. */
export interface ConnectionPaths {
  /** Part of the name of each file. */
  readonly id: string;
  /** Configuration for `ssh -F`. */
  readonly configuration: string;
  /** known_hosts of the host at that place of the route. */
  knownHosts(index: number): string;
  readonly control: string;
  /** Process id and start time of the master. */
  readonly record: string;
  /** Log of a login without a master. */
  readonly log: string;
  /** Socket whose connections go to the remote socket. */
  readonly probe: string;
  /** Socket that the remote socket leads to. */
  readonly peer: string;
}

export interface ControlFolderParts {
  /** `<runtime>/ssh`. */
  readonly path: string;
  readonly ssh: SshProgram;
}

/** The folder with the sockets and files of all connections, 0700. */
export class ControlFolder {
  readonly #parts: ControlFolderParts;

  constructor(parts: ControlFolderParts) {
    this.#parts = parts;
  }

  /** New paths for a connection to a host. Names of sockets are short, as ssh adds 17 bytes to one while it makes it. */
  paths(host: string): ConnectionPaths {
    const at = (name: string): string => join(this.#parts.path, name);
    const id = randomBytes(4).toString("hex");
    return {
      id,
      configuration: at(`${host}.${id}.conf`),
      knownHosts: (index) => at(`${host}.${id}.${index}.known_hosts`),
      control: at(`${id}${CONTROL}`),
      record: at(`${id}${RECORD}`),
      log: at(`${id}.log`),
      probe: at(`${id}.probe`),
      peer: at(`${id}.peer`),
    };
  }

  /** Makes the folder. @throws AgentError `place_refused` */
  async prepare(): Promise<void> {
    await ensureFolder(this.#parts.path);
  }

  /** Writes a file that only this user can read. */
  async write(path: string, text: string): Promise<void> {
    await writeAtomically(path, text, { mode: 0o600 });
  }

  /** Remembers a master, so that the next start finds it after a crash. */
  async record(path: string, pid: number): Promise<void> {
    const started = await processStart(pid);
    if (started !== undefined) await this.write(path, JSON.stringify({ pid, started }));
  }

  /** Removes all files of a connection, also those with a temporary name. */
  async discard({ id }: ConnectionPaths): Promise<void> {
    const { path } = this.#parts;
    const names = (await ifExists(readdir(path))) ?? [];
    const own = names.filter((name) => name.startsWith(`${id}.`) || name.includes(`.${id}.`));
    await Promise.all(own.map((name) => rm(join(path, name), { force: true })));
  }

  /**
   * Ends every master that a daemon which crashed has left, by its socket and then by its process id, and empties the
   * folder. A process whose start time is another one is not touched.
   */
  async endLeftovers(): Promise<void> {
    const { path, ssh } = this.#parts;
    const names = (await ifExists(readdir(path))) ?? [];
    await Promise.all(
      names
        .filter((name) => name.endsWith(CONTROL))
        .map((name) => ssh.run(controlArguments(join(path, name), ["-O", "exit"]), EXIT_TIMEOUT_MS)),
    );
    for (const name of names.filter((each) => each.endsWith(RECORD))) {
      const record = await readRecord(join(path, name));
      if (record === undefined || (await processStart(record.pid)) !== record.started) continue;
      // It has not obeyed its socket. It may end by itself now: the end of the daemon before ends it as well.
      signalProcess(record.pid, "SIGKILL");
    }
    await Promise.all(names.map((name) => rm(join(path, name), { recursive: true, force: true })));
  }
}

/** Name that ssh needs on the command line and does not use. */
const UNUSED_HOST = "forward";

/** Arguments of ssh for a request to a master. */
export function controlArguments(control: string, request: readonly string[]): string[] {
  return ["-F", "none", "-S", control.replaceAll("%", "%%"), ...request, "--", UNUSED_HOST];
}

async function readRecord(path: string): Promise<z.infer<typeof recordSchema> | undefined> {
  try {
    return recordSchema.safeParse(JSON.parse(await readFile(path, "utf8"))).data;
  } catch {
    return undefined;
  }
}

/** Start of a process, which tells it from another one with its id; undefined if it is gone or cannot be seen. */
async function processStart(pid: number): Promise<string | undefined> {
  try {
    const [found, boot] = await Promise.all([
      readProcess(pid),
      readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    ]);
    return found && `${boot.trim()} ${found.startTime}`;
  } catch {
    return undefined;
  }
}
