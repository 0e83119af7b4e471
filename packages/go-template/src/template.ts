import { TemplateError } from "./errors.ts";
import { evaluate, isBuiltin, type ExecuteOptions } from "./evaluate.ts";
import type { FunctionMap } from "./function.ts";
import { STANDARD_FUNCTION_NAMES } from "./functions.ts";
import { MAX_CALL_DEPTH } from "./limits.ts";
import { parse, type ParsedTemplate } from "./parser.ts";
import type { TemplateData } from "./value.ts";

/** A parsed template. It can be run any number of times. */
export class Template {
  readonly name: string;
  readonly #parsed: ParsedTemplate;

  constructor(name: string, parsed: ParsedTemplate) {
    this.name = name;
    this.#parsed = parsed;
  }

  /**
   * Runs the template.
   *
   * A field that the data does not have is an error if it is printed or passed on. As the direct input of `default`,
   * `if`, `with`, `and`, `or` and `not` it is empty.
   *
   * @param data value of `.`
   * @param functions further functions, see standardFunctions
   * @throws TemplateError, and errors of `options.onValue`
   */
  execute(data: TemplateData, functions: FunctionMap = new Map(), options: ExecuteOptions = {}): string {
    try {
      return evaluate(this.name, this.#parsed, data, functions, options);
    } catch (error) {
      // Each nesting is within its limit, but together they use up the stack.
      if (!(error instanceof RangeError)) throw error;
      throw new TemplateError("limit", `nested too deep (maximum ${MAX_CALL_DEPTH} templates)`, this.name, {
        line: 1,
        column: 1,
      });
    }
  }
}

export interface ParseOptions {
  /** Functions that may be called, in addition to Go's own. Default: {@link STANDARD_FUNCTION_NAMES}. */
  readonly functions?: Iterable<string>;
}

/**
 * Parses a template in the language of Go's text/template.
 * @param name name for errors: a rule, or a file
 * @throws TemplateError `syntax`, `unknown_function`, `limit`
 * @example parseTemplate("greeting", "Hello {{ .name }}").execute(new Map([["name", "Ada"]])) // "Hello Ada"
 */
export function parseTemplate(name: string, text: string, options: ParseOptions = {}): Template {
  const functions = new Set<string>(options.functions ?? STANDARD_FUNCTION_NAMES);
  return new Template(
    name,
    parse(name, text, (called) => isBuiltin(called) || functions.has(called)),
  );
}
