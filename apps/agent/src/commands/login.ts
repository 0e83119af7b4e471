import { flagOf } from "@devplat/cli";
import { noteLine, printLine, visible } from "@devplat/base/terminal";
import { TOKEN_VARIABLE } from "../auth/sign-in.ts";
import { assembleStore, type StoreParts } from "../assemble/store.ts";
import type { RunCommand } from "./common/command.ts";
import { openContext } from "./common/context.ts";
import { signInAgain } from "./login/sign-in-again.ts";
import { untilStopped } from "./common/signals.ts";
import { removeToken } from "../auth/sign-out.ts";
import { AgentError } from "../errors.ts";

/** A new login with the configured method, even if a valid token exists. */
export const login: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const { store } = loaded.config;
  if (store.driver === "embedded") {
    printLine("The store is on this host: no sign-in is needed.");
    return 0;
  }
  if (invocation.flags.dryRun) {
    printLine(`would sign in by ${store.auth_method}; nothing was done`);
    return 0;
  }
  const parts = await assembleStore(host, loaded, true);
  const stop = untilStopped();
  try {
    const anyIdentity = flagOf(invocation.options, "switch");
    const info = await signInAgain(host, loaded, parts, stop.signal, { anyIdentity });
    const until = info.expiresAt === undefined ? "" : `, until ${new Date(info.expiresAt).toISOString()}`;
    printLine(`Signed in as ${visible(info.displayName)}${until}.`);
    if ((host.environment[TOKEN_VARIABLE] ?? "").trim() !== "") {
      noteLine(`${TOKEN_VARIABLE} is set and comes before this login: unset it to use the login.`);
    }
    return 0;
  } finally {
    stop.release();
    await parts.close();
  }
};

/** Forgets the token. A running daemon notices the removal of the file and forgets the token too. */
export const logout: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  if (invocation.flags.dryRun) {
    printLine("would remove the token file; nothing was done");
    return 0;
  }
  const parts = await assembleStore(host, loaded, true);
  const stop = untilStopped();
  try {
    if (parts.tokens === undefined) {
      printLine("The store is on this host: there is no token.");
      return 0;
    }
    await signOut(parts.tokens, flagOf(invocation.options, "revoke"), stop.signal);
    if ((host.environment[TOKEN_VARIABLE] ?? "").trim() !== "") {
      noteLine(`${TOKEN_VARIABLE} is still set in this shell.`);
    }
    return 0;
  } finally {
    stop.release();
    await parts.close();
  }
};

async function signOut(
  tokens: NonNullable<StoreParts["tokens"]>,
  revoke: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { removed, token, ownLogin } = await removeToken(tokens);
  printLine(removed ? "Signed out: the token file is removed." : "There was no token file.");
  if (!revoke || token === undefined) return;
  if (!ownLogin) {
    throw new AgentError("login_refused", "the token was not revoked: it is not of a login of this program", {
      hint: "It was not made by this program. Revoke it where it was made.",
    });
  }
  await tokens.client.revokeSelf({ token, signal });
  printLine("The token is revoked.");
}
