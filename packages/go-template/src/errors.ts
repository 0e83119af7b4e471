import { AppError } from "@devplat/base";

/**
 * - `syntax`: the text is not a template.
 * - `unknown_function`: the template calls a function that does not exist.
 * - `missing_key`: a field that the data does not have is printed or passed on.
 * - `null_value`: a null is printed.
 * - `wrong_type`: a value does not have the type that the action needs.
 * - `function_failed`: a function refused its arguments.
 * - `no_template`: the template that an action names is not defined.
 * - `limit`: output, steps or depth is over a limit.
 */
export const TEMPLATE_ERROR_CODES = [
  "syntax",
  "unknown_function",
  "missing_key",
  "null_value",
  "wrong_type",
  "function_failed",
  "no_template",
  "limit",
] as const;
export type TemplateErrorCode = (typeof TEMPLATE_ERROR_CODES)[number];

/** Place of an action. Lines and columns count from 1, columns in UTF-16 code units. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Error with the template and the place. It quotes names of the template, never a value of the data. */
export class TemplateError extends AppError<TemplateErrorCode> {
  /** Name of the template's source, as given to parseTemplate. */
  readonly template: string;
  readonly line: number;
  readonly column: number;
  /** The message without template and place. */
  readonly problem: string;

  constructor(
    code: TemplateErrorCode,
    problem: string,
    template: string,
    place: Place,
    options: { hint?: string; cause?: unknown } = {},
  ) {
    super(code, `${template}:${place.line}:${place.column}: ${problem}`, options);
    this.template = template;
    this.line = place.line;
    this.column = place.column;
    this.problem = problem;
  }
}

/**
 * Error of a function that refuses its arguments. The {@link TemplateError} repeats its message, so it must not quote
 * a value.
 */
export class FunctionError extends AppError<"wrong_type" | "function_failed" | "limit"> {
  constructor(problem: string, code: "wrong_type" | "function_failed" | "limit" = "function_failed") {
    super(code, problem);
  }
}
