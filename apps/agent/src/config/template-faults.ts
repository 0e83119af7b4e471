import { keyText, type ConfigProblem } from "@devplat/config";
import { STANDARD_FUNCTION_NAMES, TemplateError, parseTemplate } from "@devplat/go-template";
import type { LocatedConfig } from "./overlay.ts";

/** A copy reads its own source only, and the names in an SSH certificate come from no secret. */
const WITHOUT_SECRETS: readonly string[] = STANDARD_FUNCTION_NAMES.filter((name) => name !== "secret");

/**
 * Faults of all templates of a configuration that parsing finds, also of rules that are paused or not enabled.
 * A load does not look for them: a rule with a broken template fails alone, and the others work.
 */
export function templateFaults({ config, locate }: LocatedConfig): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const look = (
    path: readonly PropertyKey[],
    key: string,
    text: string,
    functions: readonly string[],
  ): void => {
    const fault = faultOf(text, functions);
    if (fault === undefined) return;
    const message = `line ${fault.line}, column ${fault.column} of the template: ${fault.problem}`;
    problems.push({ ...locate(path), key, message });
  };
  for (const [index, { name, target }] of config.rules.entries()) {
    if (target.template === undefined) continue;
    // The index counts the rules of all documents together, so the name is clearer.
    const key = `rules.${name}.target.template`;
    look(["rules", index, "target", "template"], key, target.template, STANDARD_FUNCTION_NAMES);
  }
  for (const [key, enrolment] of Object.entries(config.enrolments)) {
    if (enrolment.engine !== "copy") continue;
    for (const [field, template] of Object.entries(enrolment.fields ?? {})) {
      const path = ["enrolments", key, "fields", field];
      look(path, keyText(path), template, WITHOUT_SECRETS);
    }
  }
  for (const [index, source] of config.agent.keys.entries()) {
    if (source.source !== "ca") continue;
    for (const [place, principal] of source.principals.entries()) {
      const path = ["agent", "keys", index, "principals", place];
      look(path, `agent.keys.${source.name}.principals[${place}]`, principal, WITHOUT_SECRETS);
    }
  }
  return problems;
}

function faultOf(text: string, functions: readonly string[]): TemplateError | undefined {
  try {
    parseTemplate("template", text, { functions });
    return undefined;
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
}
