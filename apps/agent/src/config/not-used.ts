import { formatProblem } from "@devplat/config";
import type { LocatedConfig } from "./overlay.ts";

/** Warnings for settings that have no effect in this version, so that they do not look as if they worked. */
export function notUsedYet({ config: { agent }, locate }: LocatedConfig): string[] {
  const warning = (key: string, subject: string): string =>
    formatProblem({
      ...locate([key]),
      key,
      message: `is checked, but ${subject} not built yet in this version`,
    });
  return agent.enabled ? [warning("agent", "the SSH agent is")] : [];
}
