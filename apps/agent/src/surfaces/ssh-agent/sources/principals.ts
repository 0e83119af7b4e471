import { TemplateError } from "@devplat/go-template";
import { AgentError } from "../../../errors.ts";
import { RuleTemplate } from "../../../sync/content/rule-template.ts";

/** Values of the templates. */
export interface PrincipalContext {
  readonly username: string;
  readonly env: (name: string) => string | undefined;
}

/** Renders the names of a certificate. @throws AgentError `template_failed` */
export function renderPrincipals(templates: readonly string[], context: PrincipalContext): string[] {
  const names = templates.map((template, index) => {
    const subject = `principal ${index + 1}`;
    const name = render(subject, template, context).trim();
    if (name === "") throw failed(`${subject} is empty`);
    // The store takes the names as a list with commas.
    if (/[\s,]/.test(name)) throw failed(`${subject} holds a comma or white space`);
    return name;
  });
  return [...new Set(names)];
}

function render(subject: string, template: string, context: PrincipalContext): string {
  const surroundings = { ...context, data: new Map(), secret: () => undefined };
  try {
    const outcome = new RuleTemplate(subject, template).execute(surroundings, (value) => value);
    if (outcome.kind === "text") return outcome.text;
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    throw failed(`${subject}: ${error.message}`);
  }
  throw failed(`${subject}: a principal cannot read a secret`);
}

function failed(reason: string): AgentError {
  return new AgentError("template_failed", `cannot make the names of the certificate: ${reason}`);
}
