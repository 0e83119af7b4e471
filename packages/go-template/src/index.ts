export { FunctionError, TemplateError } from "./errors.ts";
export type { ValueContext } from "./evaluate.ts";
export { STANDARD_FUNCTION_NAMES, standardFunctions } from "./functions.ts";
export { MAX_STEPS } from "./limits.ts";
export { parseTemplate, Template } from "./template.ts";
export type { Value } from "./value.ts";
