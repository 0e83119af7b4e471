import { stat } from "node:fs/promises";
import { expandHome, isFileRule, type Rule } from "../../config/sections/rule.ts";

/** Read permission of the group and of everybody. */
const READ_BY_OTHERS = 0o044;

/** A target that more users can read than its rule's `mode` says. */
export interface ExposedFile {
  readonly rule: string;
  /** As configured. */
  readonly path: string;
  /** A sentence for the user. */
  readonly warning: string;
}

/** The existing targets of active rules that others can read although the rule's `mode` does not say so. */
export async function exposedFiles(rules: readonly Rule[], home: string): Promise<readonly ExposedFile[]> {
  // The permission bits of Windows say nothing about who can read a file.
  if (process.platform === "win32") return [];
  const found = await Promise.all(
    rules
      .filter(isFileRule)
      .filter(({ enabled, paused }) => enabled && !paused)
      .map(async ({ name, target }): Promise<ExposedFile | undefined> => {
        const stats = await stat(expandHome(target.path, home)).catch(() => undefined);
        if (stats === undefined || (stats.mode & READ_BY_OTHERS & ~target.mode) === 0) return undefined;
        const mode = (stats.mode & 0o777).toString(8).padStart(4, "0");
        const remedy = target.tighten
          ? "The rule's next write closes it"
          : "Run chmod 600 on it, or set target.tighten: true";
        const warning = `others can read ${target.path} (mode ${mode}), into which rule ${name} writes a secret. ${remedy}`;
        return { rule: name, path: target.path, warning };
      }),
  );
  return found.filter((file) => file !== undefined);
}
