import { printLine } from "@devplat/base/terminal";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./command.ts";
import { ask } from "./prompt.ts";
import { changeSecret } from "./secret-session.ts";

export const run: RunCommand = (invocation) => {
  const [path = ""] = invocation.positionals;
  return changeSecret(invocation, path, async (store, signal) => {
    const { version } = await store.metadata(path, { signal });
    if (invocation.flags.dryRun) {
      printLine(`would remove ${path} with every version up to ${version}`);
      return;
    }
    if (invocation.options["yes"] !== true) await confirm(path);
    await store.delete(path, { signal });
    printLine(`removed ${path}`);
  });
};

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
