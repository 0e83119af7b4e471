import type { ChildProcess, SpawnOptions } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { TestkitError } from "./errors.ts";
import { dyingWithParent, exitCode, spawnGroup, stopGroup } from "./process.ts";

/** A start on a loaded machine; a peer that is not up by then never will be. */
const START_LIMIT_MS = 90_000;
const POLL_MS = 10;
const CLOSE_LIMIT_MS = 2_000;
/** Another process may take the chosen port between the choice and the start. */
const START_TRIES = 3;

export interface PeerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly options?: Omit<SpawnOptions, "stdio">;
  /** Asked every few milliseconds with everything the peer has printed so far. */
  readonly isReady: (output: string) => boolean | Promise<boolean>;
}

/** A long-lived program that a test uses. It ends with this process, also if that is killed. */
export interface Peer {
  readonly pid: number;
  /** Everything printed so far, both streams. */
  output(): string;
  /** Resolves with the exit code (128 + signal) when it is gone. */
  readonly ended: Promise<number>;
  /** Ends it and its children, by SIGTERM first unless another signal is given; resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number>;
}

/** Starts a peer and waits until it is ready; when it ends before that, tries again with a new command. */
export async function startPeer(name: string, prepare: () => Promise<PeerCommand>): Promise<Peer> {
  for (let tries = 1; ; tries++) {
    const plan = await prepare();
    const [command, args] = dyingWithParent(plan.command, plan.args);
    const peer = watch(spawnGroup(command, args, { ...plan.options, stdio: ["ignore", "pipe", "pipe"] }));
    const found = await untilReady(peer, plan.isReady);
    if (found === undefined) return peer;
    await peer.stop("SIGKILL");
    if (tries === START_TRIES || !found.again) {
      throw TestkitError.failed(name, `${found.reason}; it printed:\n${peer.output().slice(-2000)}`);
    }
  }
}

function watch(child: ChildProcess): Peer {
  const printed: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => printed.push(chunk));
  }
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const ended = new Promise<number>((resolve) => {
    child.once("error", (error) => {
      printed.push(Buffer.from(error.message));
      resolve(127);
    });
    child.once("exit", (code, signal) => resolve(exitCode(code, signal)));
  });
  return {
    pid: child.pid ?? -1,
    output: () => Buffer.concat(printed).toString("utf8"),
    ended,
    async stop(signal) {
      if (child.pid === undefined) return ended;
      await stopGroup(child, signal);
      // The last of what it printed may come after its end; a grandchild that left the group keeps the pipe open.
      await Promise.race([closed, sleep(CLOSE_LIMIT_MS, undefined, { ref: false })]);
      return ended;
    },
  };
}

async function untilReady(
  peer: Peer,
  isReady: PeerCommand["isReady"],
): Promise<{ reason: string; again: boolean } | undefined> {
  const state: { code?: number } = {};
  void peer.ended.then((code) => (state.code = code));
  const deadline = performance.now() + START_LIMIT_MS;
  for (;;) {
    if (state.code !== undefined) return { reason: `it ended with ${state.code}`, again: true };
    if (await isReady(peer.output())) return undefined;
    if (performance.now() > deadline) {
      return { reason: `it was not ready after ${START_LIMIT_MS / 1000} s`, again: false };
    }
    await sleep(POLL_MS);
  }
}

/** Whether the response to a GET has a status that `accept` allows. False if nobody listens at the address. */
export async function answers(
  url: string,
  accept: (status: number) => boolean = (status) => status === 200,
): Promise<boolean> {
  try {
    const response = await fetch(url);
    await response.body?.cancel();
    return accept(response.status);
  } catch {
    return false;
  }
}
