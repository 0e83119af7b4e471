export { FunctionError, TEMPLATE_ERROR_CODES, TemplateError, type TemplateErrorCode } from "./errors.ts";
export type { ExecuteOptions, ValueContext } from "./evaluate.ts";
export type { FunctionMap, TemplateFunction } from "./function.ts";
export { STANDARD_FUNCTION_NAMES, standardFunctions, type FunctionSources } from "./functions.ts";
export { MAX_CALL_DEPTH, MAX_NESTING, MAX_OUTPUT, MAX_STEPS } from "./limits.ts";
export { parseTemplate, Template, type ParseOptions } from "./template.ts";
export type { NumberText, TemplateData, Value } from "./value.ts";
