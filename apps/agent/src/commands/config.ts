import { flagOf } from "@devplat/cli";
import { ConfigError, type ConfigProblem } from "@devplat/config";
import { printJson, printText, visibleJson } from "@devplat/base/terminal";
import type { LoadedConfig } from "../config/load.ts";
import { templateFaults } from "../config/template-faults.ts";
import { AgentError } from "../errors.ts";
import type { Host } from "../host.ts";
import { mountPlaceOf } from "../sync/mounted/mount-place.ts";
import { TargetPolicy } from "../sync/target/target-policy.ts";
import type { RunCommand } from "./common/command.ts";
import { openContext } from "./common/context.ts";
import { stringify } from "yaml";
import { asWritten } from "../config/as-written.ts";
import { configJsonSchema } from "../config/json-schema.ts";

/** Exit code 1, and every fault with file, line and key, if the configuration is wrong. */
export const check: RunCommand = async (invocation) => {
  const asJson = flagOf(invocation.options, "json");
  try {
    const { host, loaded } = await openContext(invocation);
    const { sources, warnings, config } = loaded;
    const faults = [...templateFaults(loaded), ...(await placeFaults(host, loaded))];
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

/** Targets that no sync would write, wherever the configuration is used. */
async function placeFaults(
  { places }: Host,
  { config, sources, locate }: LoadedConfig,
): Promise<ConfigProblem[]> {
  const targets = new TargetPolicy(places, config.sync.allowed_targets, sources);
  const problems: ConfigProblem[] = [];
  const { mountpoint, remedy } = mountPlaceOf(config, places.home);
  for (const [index, { name, target, remote }] of config.rules.entries()) {
    const fault = (key: string, message: string): void => {
      problems.push({
        ...locate(["rules", index, "target", key]),
        key: `rules.${name}.target.${key}`,
        message,
      });
    };
    if (target.mount !== undefined) {
      if (mountpoint === undefined) fault("mount", `there is no mount for this file: ${remedy}`);
      continue;
    }
    try {
      await targets.place(target.path, remote);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      fault("path", error.message);
    }
  }
  return problems;
}

/** The faults that a configuration can have; undefined for faults of this program. */
function problemsOf(error: unknown): readonly ConfigProblem[] | undefined {
  if (error instanceof ConfigError) return error.problems;
  if (error instanceof AgentError)
    return [{ source: "", line: 0, column: 0, key: "", message: error.message }];
  return undefined;
}

function json(value: unknown): string {
  return `${visibleJson(value, 2)}\n`;
}

/** The configuration as it applies, with every default, in the form of a configuration file. */
export const print: RunCommand = async (invocation) => {
  const { loaded } = await openContext(invocation);
  const written = asWritten(loaded.config);
  if (flagOf(invocation.options, "json")) {
    printJson({ sources: loaded.sources, config: written });
    return 0;
  }
  printText(`# ${loaded.sources.join(", ")}\n${stringify(written)}`);
  return 0;
};

/** The JSON Schema of the configuration file, for editors. */
export const schema: RunCommand = () => {
  printJson(configJsonSchema());
  return Promise.resolve(0);
};
