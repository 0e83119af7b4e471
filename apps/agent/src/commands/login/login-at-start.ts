import { noteLine } from "@devplat/base/terminal";
import type { StoreParts } from "../../assemble/store.ts";
import type { Host } from "../../host.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { AgentError } from "../../errors.ts";
import { signInAgain } from "./sign-in-again.ts";

/**
 * Makes sure that a user is signed in, if need be by a login at the terminal, where there is one.
 * @throws AgentError `not_signed_in`, or what the login came to; SecretStoreError when the store cannot be asked
 */
export async function ensureSignedIn(
  host: Host,
  loaded: LoadedConfig,
  parts: StoreParts,
  signal: AbortSignal,
): Promise<void> {
  try {
    await parts.signIn.ensure(signal);
  } catch (error) {
    const isNeeded = error instanceof AgentError && error.code === "not_signed_in";
    if (!isNeeded || !hasTerminal() || loaded.config.store.borrow_only) throw error;
    noteLine(error.message);
    await signInAgain(host, loaded, parts, signal);
    await parts.signIn.ensure(signal);
  }
}

/**
 * The same for the daemon, during its other work. It waits for a token in any case, so that a login that is declined
 * or fails is only said. A token that comes another way (web page, token file) ends the questions. Never throws.
 */
export async function offerLogin(
  host: Host,
  loaded: LoadedConfig,
  parts: StoreParts,
  stopped: AbortSignal,
): Promise<void> {
  if (!hasTerminal()) return;
  const signedIn = new AbortController();
  parts.signIn.onChange(() => {
    if (parts.signIn.state().authenticated) signedIn.abort();
  });
  try {
    await ensureSignedIn(host, loaded, parts, AbortSignal.any([stopped, signedIn.signal]));
  } catch (error) {
    if (stopped.aborted || signedIn.signal.aborted) return;
    host.logger.warn({ err: error }, "no login at the terminal; waiting for a token");
  }
}

/** Something to read answers from, and to show questions on. */
export function hasTerminal(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}
