import { printLine } from "@devplat/base/terminal";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./command.ts";
import { ask } from "./prompt.ts";
import { refuseEnrolled, withStore } from "./secret-session.ts";

export const run: RunCommand = (invocation) =>
  withStore(invocation, async (store, signal, loaded) => {
    const [path = ""] = invocation.positionals;
    refuseEnrolled(loaded, invocation, path);
    const { version } = await store.metadata(path, { signal });
    if (invocation.flags.dryRun) {
      printLine(`would remove ${path} with every version up to ${version}`);
      return 0;
    }
    if (invocation.options["yes"] !== true) await confirm(path);
    await store.delete(path, { signal });
    printLine(`removed ${path}`);
    return 0;
  });

/** There is no undelete, so the name has to be typed. */
async function confirm(path: string): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new AgentError("confirmation_needed", `refused to remove ${path} without being asked`, {
      hint: "Use --yes; there is no undelete.",
    });
  }
  const typed = await ask(`This removes every version of ${path} for good. Type its name: `, {
    hidden: false,
  });
  if (typed !== path)
    throw new AgentError("confirmation_needed", "that is another name; nothing was removed");
}
