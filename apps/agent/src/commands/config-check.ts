import { ConfigError, type ConfigProblem } from "@devplat/config";
import { printText, visibleJson } from "@devplat/base/terminal";
import { templateFaults } from "../config/template-faults.ts";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";

/** Exit code 1, and every fault with file, line and key, if the configuration is wrong. */
export const run: RunCommand = async (invocation) => {
  const asJson = invocation.options["json"] === true;
  try {
    const { loaded } = await openContext(invocation);
    const { sources, warnings, config } = loaded;
    const faults = templateFaults(loaded);
    if (faults.length > 0) throw new ConfigError("config_invalid", faults);
    const count = config.rules.length;
    printText(
      asJson
        ? json({ ok: true, sources, warnings, rules: count, problems: [] })
        : `${sources.join(", ")}: ok, ${count} ${count === 1 ? "rule" : "rules"}\n`,
    );
    return 0;
  } catch (error) {
    if (!asJson) throw error;
    const problems = problemsOf(error);
    if (problems === undefined) throw error;
    printText(json({ ok: false, sources: [], warnings: [], rules: 0, problems }));
    return 1;
  }
};

/** The faults that a configuration can have; undefined for faults of ours. */
function problemsOf(error: unknown): readonly ConfigProblem[] | undefined {
  if (error instanceof ConfigError) return error.problems;
  if (error instanceof AgentError)
    return [{ source: "", line: 0, column: 0, key: "", message: error.message }];
  return undefined;
}

function json(value: unknown): string {
  return `${visibleJson(value, 2)}\n`;
}
