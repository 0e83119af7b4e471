import { messageOf, pollUntil, systemCode, type Clock } from "@devplat/base";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { lstat } from "node:fs/promises";
import {
  connectionConfiguration,
  REMOTE_ALIAS,
  type ConnectionConfiguration,
} from "./connection-configuration.ts";
import { controlArguments, type ConnectionPaths, type ControlFolder } from "./control-folder.ts";
import { ConnectionError, failureOf, type Failure } from "./failure.ts";
import type { ProcessLimits } from "./process-limits.ts";
import type { SshProgram, SshResult } from "./ssh-program.ts";

/** Longest time from the start to the login. A key that wants to be touched needs some of it. In milliseconds. */
const LOGIN_TIMEOUT_MS = 45_000;
/** The server's answer to a request for a forward, in milliseconds. */
const REQUEST_TIMEOUT_MS = 15_000;
const POLL_MS = 10;
/** Time in which messages are still read after the end of ssh, in milliseconds. */
const DRAIN_MS = 1000;
/** Time from SIGTERM to SIGKILL, in milliseconds. */
const KILL_AFTER_MS = 2000;
/** The end of what ssh printed, in characters. */
const MAX_MESSAGES = 64 * 1024;

export interface MasterParts {
  readonly ssh: SshProgram;
  readonly folder: ControlFolder;
  readonly limits: ProcessLimits;
  readonly clock: Clock;
}

/** One connection to a remote host: an ssh process that takes requests on its control socket. */
export class Master {
  readonly #parts: MasterParts;
  readonly #paths: ConnectionPaths;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  /** Resolves when the connection has ended, with the reason. Never rejects. */
  readonly ended: Promise<Failure>;
  #messages = "";
  #ownEnd: Failure | undefined;

  private constructor(parts: MasterParts, paths: ConnectionPaths, child: ChildProcess) {
    this.#parts = parts;
    this.#paths = paths;
    this.#child = child;
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#messages = (this.#messages + chunk.toString("utf8")).slice(-MAX_MESSAGES);
    });
    let fault: Failure | undefined;
    this.#exited = once(child, "exit").then(
      () => undefined,
      (error: unknown) => void (fault = { class: "local", message: `Cannot start ssh: ${messageOf(error)}` }),
    );
    this.ended = this.#exited.then(async () => {
      // The pipe may hold the last words; a hop's process may hold the pipe.
      if (child.stderr?.readableEnded === false)
        await Promise.race([once(child.stderr, "close"), parts.clock.sleep(DRAIN_MS)]);
      return this.#ownEnd ?? fault ?? failureOf(this.#messages, "handshake");
    });
  }

  /**
   * Connects and logs in.
   * @throws ConnectionError | ForwardError `configuration_refused`
   */
  static async connect(
    parts: MasterParts,
    paths: ConnectionPaths,
    configuration: ConnectionConfiguration,
    signal: AbortSignal,
  ): Promise<Master> {
    await parts.folder.write(paths.configuration, connectionConfiguration(configuration));
    signal.throwIfAborted();
    // Not -O or any other request: these are for a connection that is already there.
    const control = paths.control.replaceAll("%", "%%");
    const args = ["-F", paths.configuration, "-M", "-S", control, "-N", "-T", "--", REMOTE_ALIAS];
    const master = new Master(parts, paths, parts.ssh.start(args, ["ignore", "ignore", "pipe"]));
    try {
      await master.#login(signal);
    } catch (error) {
      await master.end();
      throw error;
    }
    master.#watchLimits();
    return master;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Asks the server to listen on a socket whose connections go to one of this host. @throws ConnectionError */
  async forwardRemote(remoteSocket: string, localSocket: string): Promise<void> {
    await this.#request(["-O", "forward", "-R", forwardText(remoteSocket, localSocket)]);
  }

  /** Listens on a socket of this host whose connections go to one of the remote host. @throws ConnectionError */
  async forwardLocal(localSocket: string, remoteSocket: string): Promise<void> {
    await this.#request(["-O", "forward", "-L", forwardText(localSocket, remoteSocket)]);
  }

  /** Takes back {@link Master.forwardRemote}. The socket's file stays on the server. @throws ConnectionError */
  async cancelRemote(remoteSocket: string, localSocket: string): Promise<void> {
    await this.#request(["-O", "cancel", "-R", forwardText(remoteSocket, localSocket)]);
  }

  /** Takes back {@link Master.forwardLocal}. @throws ConnectionError */
  async cancelLocal(localSocket: string, remoteSocket: string): Promise<void> {
    await this.#request(["-O", "cancel", "-L", forwardText(localSocket, remoteSocket)]);
  }

  /** Starts a subsystem of the server; it speaks on the process's standard input and output. */
  startSubsystem(name: string): ChildProcess {
    // Without a master ssh would connect by itself: this way it cannot.
    const never = ["-o", "ProxyCommand=false", "-o", "BatchMode=yes", "-s"];
    return this.#parts.ssh.start(
      [...controlArguments(this.#paths.control, never), name],
      ["pipe", "pipe", "pipe"],
    );
  }

  /** Ends the connection and removes its sockets. */
  async end(failure?: Failure): Promise<void> {
    this.#ownEnd ??= failure;
    if (this.#isRunning()) {
      const timer = setTimeout(() => this.#child.kill("SIGKILL"), KILL_AFTER_MS);
      this.#child.kill("SIGTERM");
      // A stopped process takes no other signal.
      this.#child.kill("SIGCONT");
      await this.#exited;
      clearTimeout(timer);
    }
    await this.#parts.folder.discard(this.#paths);
  }

  #isRunning(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async #login(signal: AbortSignal): Promise<void> {
    const { folder, clock } = this.#parts;
    if (this.#child.pid !== undefined) await folder.record(this.#paths.record, this.#child.pid);
    const isLoggedIn = await pollUntil(
      async () => {
        // ssh makes its control socket after the login.
        if (await isThere(this.#paths.control)) return true;
        signal.throwIfAborted();
        if (!this.#isRunning()) throw new ConnectionError(await this.ended);
        return false;
      },
      (seen) => seen,
      { limitMs: LOGIN_TIMEOUT_MS, intervalMs: POLL_MS, clock },
    );
    if (!isLoggedIn) {
      throw new ConnectionError({
        class: "timeout",
        message: `No login within ${LOGIN_TIMEOUT_MS / 1000} s`,
      });
    }
  }

  async #request(request: readonly string[]): Promise<SshResult> {
    const result = await this.#parts.ssh.run(
      controlArguments(this.#paths.control, request),
      REQUEST_TIMEOUT_MS,
    );
    if (result.code === 0) return result;
    if (!this.#isRunning()) throw new ConnectionError(await this.ended);
    if (result.timedOut)
      throw new ConnectionError({ class: "timeout", message: "The server does not answer a request" });
    throw new ConnectionError(failureOf(result.stderr, "forwarding-denied"));
  }

  #watchLimits(): void {
    if (this.#child.pid === undefined || !this.#isRunning()) return;
    const endWatch = this.#parts.limits.add(this.#child.pid, (message) => {
      void this.end({ class: "local", message, waitLong: true });
    });
    void this.#exited.then(endWatch);
  }
}

/** `listen:connect` of two sockets, as ssh reads it: it takes a backslash, a colon and a token as more than a character. */
function forwardText(listen: string, connect: string): string {
  return [listen, connect]
    .map((path) => path.replaceAll(/[\\:]/g, String.raw`\$&`).replaceAll("%", "%%"))
    .join(":");
}

async function isThere(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSocket();
  } catch (error) {
    if (systemCode(error) === "ENOENT") return false;
    throw error;
  }
}
