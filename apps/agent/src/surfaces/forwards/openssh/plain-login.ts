import { ifExists, type Clock } from "@devplat/base";
import { readFile } from "node:fs/promises";
import {
  connectionConfiguration,
  REMOTE_ALIAS,
  type ConnectionConfiguration,
} from "./connection-configuration.ts";
import type { ConnectionPaths, ControlFolder } from "./control-folder.ts";
import { ConnectionError, failureOf } from "./failure.ts";
import type { SshProgram } from "./ssh-program.ts";

/** Longest time from the start to the login. A key that wants to be touched needs some of it. In milliseconds. */
const LOGIN_TIMEOUT_MS = 45_000;
const POLL_MS = 20;
/** Line of ssh's log after the login. A banner of the server does not go into the log. */
const LOGGED_IN = /^Authenticated to /m;

export interface PlainLoginParts {
  readonly ssh: Pick<SshProgram, "run">;
  readonly folder: Pick<ControlFolder, "write">;
  readonly clock: Clock;
}

/**
 * Logs in once by a plain ssh process, and ends it: for systems whose OpenSSH has no control sockets. The caller removes
 * the files of the paths.
 *
 * @throws ConnectionError | ForwardError
 */
export async function tryLogin(
  { ssh, folder, clock }: PlainLoginParts,
  paths: ConnectionPaths,
  configuration: ConnectionConfiguration,
  signal: AbortSignal,
): Promise<void> {
  await folder.write(paths.configuration, connectionConfiguration(configuration));
  signal.throwIfAborted();
  const logged = async (): Promise<string> => (await ifExists(readFile(paths.log, "utf8"))) ?? "";
  const args = ["-F", paths.configuration, "-E", paths.log, "-o", "LogLevel=VERBOSE", "-N", "-T", "--"];
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const running = ssh.run([...args, REMOTE_ALIAS], LOGIN_TIMEOUT_MS, either).finally(() => over.abort());
  // It is awaited below; it may fail before that.
  running.catch(() => undefined);
  while (!over.signal.aborted && !LOGGED_IN.test(await logged()))
    await Promise.race([running, clock.sleep(POLL_MS)]);
  over.abort();
  const { stderr, timedOut } = await running;
  signal.throwIfAborted();
  const log = await logged();
  if (LOGGED_IN.test(log)) return;
  throw new ConnectionError(failureOf(`${log}\n${stderr}`, timedOut ? "timeout" : "handshake"));
}
