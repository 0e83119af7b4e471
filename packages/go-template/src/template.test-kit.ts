import { FunctionError } from "./errors.ts";
import { standardFunctions } from "./functions.ts";
import { parseTemplate } from "./template.ts";
import type { TemplateData } from "./value.ts";

/** The standard functions with an environment, a store and a user of their own. */
export const functions = standardFunctions({
  env: (name) => {
    if (name.startsWith("AGENT_")) throw new FunctionError("this variable is not for templates");
    return `value of ${name}`;
  },
  secret: (path) => new Map([["password", `of ${path}`]]),
  username: () => "ada",
});

/** A value of each kind. */
export const DATA: TemplateData = new Map<string, TemplateData>([
  ["name", "Ada"],
  ["empty", ""],
  ["nothing", null],
  ["port", { number: "5432" }],
  ["price", { number: "1.10" }],
  ["huge", { number: "1e400" }],
  ["big", { number: "9223372036854775808" }],
  ["zero", { number: "-0.0e5" }],
  ["list", ["b", "a", { number: "3" }]],
  [
    "map",
    new Map<string, TemplateData>([
      ["z", "last"],
      ["a", true],
      ["number", "7"],
    ]),
  ],
  ["lines", "one\ntwo"],
]);

export function render(text: string, data: TemplateData = DATA): string {
  return parseTemplate("rule", text).execute(data, functions);
}
