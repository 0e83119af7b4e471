import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";

/** Exit code 1, and every fault with file, line and key, if the configuration is wrong. */
export const run: RunCommand = async (invocation) => {
  const { loaded } = await openContext(invocation);
  const { rules } = loaded.config;
  process.stdout.write(
    `${loaded.sources.join(", ")}: ok, ${rules.length} ${rules.length === 1 ? "rule" : "rules"}\n`,
  );
  return 0;
};
