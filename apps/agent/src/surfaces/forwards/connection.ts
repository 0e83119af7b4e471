import type { Clock } from "@devplat/base";
import { configurationOf, type ConfigurationParts } from "./connection-files.ts";
import type { RemoteEntry } from "./file/remote-entry.ts";
import type { ControlFolder } from "./openssh/control-folder.ts";
import { ConnectionError, type Failure } from "./openssh/failure.ts";
import { Master } from "./openssh/master.ts";
import type { ProcessLimits } from "./openssh/process-limits.ts";
import type { SshProgram } from "./openssh/ssh-program.ts";
import { proofOf } from "./proof.ts";
import {
  makeRemoteSocket,
  removeRemoteSocket,
  type FormerSocket,
  type LocalEnds,
  type MadeSocket,
} from "./remote-socket.ts";

/** Time for taking the remote socket away before the connection ends, in milliseconds. */
const REMOVAL_TIMEOUT_MS = 2000;
/** Time in which ssh ends after it has lost its connection, in milliseconds. */
const LAST_WORDS_MS = 300;

/** A socket that serves one remote host. */
export interface PeerSocket {
  /** Shown as `nonce` by `GET /healthz`; another one for each socket. */
  readonly nonce: string;
  /** Takes other settings of lent tokens. The tokens that were lent by the former settings are revoked. Never rejects. */
  lendBy(entry: RemoteEntry): Promise<void>;
  close(): Promise<void>;
}

/** Serves remote hosts; each one on a socket of its own. */
export interface PeerServer {
  /** @param path where to listen, in a folder that is the user's alone */
  listen(path: string, entry: RemoteEntry): Promise<PeerSocket>;
  /** Host of the remote whose open socket shows a nonce. */
  hostOf(nonce: string): string | undefined;
}

export interface ConnectionParts extends ConfigurationParts {
  readonly ssh: SshProgram;
  readonly folder: ControlFolder;
  readonly peers: PeerServer;
  readonly limits: ProcessLimits;
  readonly clock: Clock;
}

interface Made extends MadeSocket {
  readonly master: Master;
  readonly peer: PeerSocket;
  readonly ends: LocalEnds;
}

/** A forward that is up. */
export class ForwardConnection {
  readonly #made: Made;
  readonly #clock: Clock;

  private constructor(made: Made, clock: Clock) {
    this.#made = made;
    this.#clock = clock;
  }

  /**
   * Connects, makes the remote socket and proves it.
   *
   * @param former the socket of the connection before
   * @throws ConnectionError | ForwardError | AgentError
   */
  static async open(
    parts: ConnectionParts,
    entry: RemoteEntry,
    former: FormerSocket | undefined,
    signal: AbortSignal,
  ): Promise<ForwardConnection> {
    const { folder, clock } = parts;
    await folder.prepare();
    const paths = folder.paths(entry.host);
    let peer: PeerSocket | undefined;
    let master: Master | undefined;
    try {
      const configuration = await configurationOf(parts, paths, entry);
      peer = await parts.peers.listen(paths.peer, entry);
      const hostOf = (nonce: string): string | undefined => parts.peers.hostOf(nonce);
      const ends = { probe: paths.probe, peer: paths.peer, nonce: peer.nonce, hostOf };
      master = await Master.connect(parts, paths, configuration, signal);
      const made = await unlessEnded(
        makeRemoteSocket({ master, ends, socket: entry.remote_socket, former }),
        master,
        clock,
        signal,
      );
      return new ForwardConnection({ ...made, master, peer, ends }, clock);
    } catch (error) {
      await Promise.all([master?.end(), peer?.close()]);
      await folder.discard(paths);
      throw error;
    }
  }

  /** The remote socket was seen to lead here when it was made. */
  get proven(): boolean {
    return this.#made.proven;
  }

  /** Where the remote socket is. */
  get socket(): FormerSocket {
    return this.#made.made;
  }

  /** Process id of ssh. */
  get pid(): number | undefined {
    return this.#made.master.pid;
  }

  /** Resolves with the reason when the connection has ended. */
  get ended(): Promise<Failure> {
    return this.#made.master.ended;
  }

  /** Looks again where the remote socket leads. True also where the server does not let us see it, and never did. */
  async isOurs(): Promise<boolean> {
    const { ends, proven } = this.#made;
    const proof = await proofOf(ends.probe, ends.nonce);
    return proof === "own" || (proof === "nobody" && !proven);
  }

  /** Takes other settings of lent tokens, without another connection. Never rejects. */
  async lendBy(entry: RemoteEntry): Promise<void> {
    await this.#made.peer.lendBy(entry);
  }

  /** Ends the forward, removes the remote socket where that is possible, and closes the connection. */
  async close(): Promise<void> {
    const { master, peer, ends } = this.#made;
    const removal = removeRemoteSocket(master, ends, this.#made).catch(() => undefined);
    const limit = new AbortController();
    const late = this.#clock.sleep(REMOVAL_TIMEOUT_MS, limit.signal).catch(() => undefined);
    await Promise.race([removal, master.ended, late]);
    // Its timer would keep the process from its end.
    limit.abort();
    // The connection carries the responses to requests that came through it.
    await peer.close();
    await master.end();
  }

  /** Closes a connection that has ended, or that leads to nowhere: nothing is asked of the server. */
  async discard(): Promise<void> {
    const { master, peer } = this.#made;
    await Promise.all([master.end(), peer.close()]);
  }
}

/** The result of an action on a connection. When the connection ends, its reason counts, not the action's. */
async function unlessEnded<Result>(
  action: Promise<Result>,
  { ended }: Master,
  clock: Clock,
  signal: AbortSignal,
): Promise<Result> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason as Error);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const lost = ended.then((failure) => Promise.reject(new ConnectionError(failure)));
  try {
    return await Promise.race([action, aborted, lost]);
  } catch (error) {
    // The action may have lost what it needs a moment before ssh itself.
    const passed = clock.sleep(LAST_WORDS_MS, signal).catch(() => undefined);
    await Promise.race([lost, passed]);
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    lost.catch(() => undefined);
    action.catch(() => undefined);
  }
}
