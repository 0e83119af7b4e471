import { FunctionError } from "./errors.ts";
import { isList, isMap, typeName, type Value } from "./value.ts";

/** A function that templates can call. */
export interface TemplateFunction {
  /** Fewest and most arguments; a value from `|` counts as the last. */
  readonly arity: readonly [least: number, most: number];
  /**
   * Whether the result may stand in a line-based file whatever the argument was: the caller of the template is told so
   * by `safe` (see ValueContext). Default false.
   */
  readonly makesSafe?: boolean;
  /** Must not keep state between calls. @throws FunctionError, whose message must not quote a value */
  readonly call: (args: readonly Value[]) => Value;
}

export type FunctionMap = ReadonlyMap<string, TemplateFunction>;

/** A function of texts; numbers and booleans are taken as they print. */
export function textFunction(
  count: number,
  call: (...texts: string[]) => Value,
  options: { makesSafe?: boolean } = {},
): TemplateFunction {
  return { arity: [count, count], call: (args) => call(...args.map(textOf)), ...options };
}

/** A text, or a number or boolean as it prints. @throws FunctionError `wrong_type` */
export function textOf(value: Value): string {
  if (typeof value === "string") return value;
  if (value !== null && (typeof value !== "object" || (!isList(value) && !isMap(value)))) {
    return typeof value === "object" ? value.number : String(value);
  }
  throw new FunctionError(`expected text, found ${typeName(value)}`, "wrong_type");
}
