import { TOKEN_VARIABLE } from "../auth/sign-in.ts";
import { tokenDigest } from "../auth/denied-tokens.ts";
import { assembleStore, type StoreParts } from "../assemble.ts";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";
import { untilStopped } from "./signals.ts";

/** Forgets the token. A running daemon notices that the file is gone and forgets it as well. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  if (invocation.flags.dryRun) {
    process.stdout.write("would remove the token file; nothing was done\n");
    return 0;
  }
  const parts = await assembleStore(host, loaded, true);
  const stop = untilStopped();
  try {
    if (parts.tokens === undefined) {
      process.stdout.write("The store is on this host: there is no token.\n");
      return 0;
    }
    await logout(parts.tokens, invocation.options["revoke"] === true, stop.signal);
    if ((host.environment[TOKEN_VARIABLE] ?? "").trim() !== "") {
      process.stderr.write(`${TOKEN_VARIABLE} is still set in this shell.\n`);
    }
    return 0;
  } finally {
    stop.release();
    await parts.close();
  }
};

async function logout(
  { tokenFile, pin, client }: NonNullable<StoreParts["tokens"]>,
  revoke: boolean,
  signal: AbortSignal,
): Promise<void> {
  // One that may not be read is removed all the same.
  const token = await tokenFile.read().catch(() => undefined);
  const own = await pin.read();
  const removed = await tokenFile.remove();
  process.stdout.write(removed ? "Signed out: the token file is removed.\n" : "There was no token file.\n");
  if (!revoke || token === undefined) return;
  if (own?.own_login !== true || own.token !== tokenDigest(token)) {
    throw new AgentError("login_refused", "the token was not revoked: it is not of a login of this program", {
      hint: "Whoever made it may still use it; revoke it there.",
    });
  }
  await client.revokeSelf({ token, signal });
  process.stdout.write("The token is revoked.\n");
}
