import { noteLine, printLine, visible } from "@devplat/base/terminal";
import { TOKEN_VARIABLE } from "../auth/sign-in.ts";
import { assembleStore } from "../assemble-store.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";
import { signInAnew } from "./sign-in-anew.ts";
import { untilStopped } from "./signals.ts";

/** A fresh login with the configured method, whatever token is at hand. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const { store } = loaded.config;
  if (store.driver === "embedded") {
    printLine("The store is on this host: there is nobody to sign in to.");
    return 0;
  }
  if (invocation.flags.dryRun) {
    printLine(`would sign in by ${store.auth_method}; nothing was done`);
    return 0;
  }
  const parts = await assembleStore(host, loaded, true);
  const stop = untilStopped();
  try {
    const anyIdentity = invocation.options["switch"] === true;
    const info = await signInAnew(host, loaded, parts, stop.signal, { anyIdentity });
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
