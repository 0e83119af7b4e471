import { BRAND } from "../../brand.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Rule } from "../../config/sections/rule.ts";
import { AgentError } from "../../errors.ts";

/** The configured rule of a name. @throws AgentError `usage` */
export function findRule(loaded: LoadedConfig, name: string): Rule {
  const rule = loaded.config.rules.find((candidate) => candidate.name === name);
  if (rule !== undefined) return rule;
  throw new AgentError("usage", `there is no rule '${name}'`, {
    hint: `'${BRAND.command} rules list' shows the rules.`,
  });
}
