import { FunctionError } from "./errors.ts";
import { isList, isMap, typeName, type Value } from "./value.ts";

/** A function that templates can call. */
export interface TemplateFunction {
  /** Minimum and maximum arguments. A value from `|` is the last one. */
  readonly arity: readonly [least: number, most: number];
  /**
   * Whether the result is safe in a line-based file, for every argument. The caller of the template gets this
   * as `safe` (see ValueContext). Default false.
   */
  readonly makesSafe?: boolean;
  /** Runs the function. It must not keep state. @throws FunctionError, whose message must not quote a value */
  readonly call: (args: readonly Value[]) => Value;
}

export type FunctionMap = ReadonlyMap<string, TemplateFunction>;

/** A function with text arguments. Numbers and booleans are converted to their printed form. */
export function textFunction(
  count: number,
  call: (...texts: string[]) => Value,
  options: { makesSafe?: boolean } = {},
): TemplateFunction {
  return { arity: [count, count], call: (args) => call(...args.map(textOf)), ...options };
}

/** A text, or the printed form of a number or boolean. @throws FunctionError `wrong_type` */
export function textOf(value: Value): string {
  if (typeof value === "string") return value;
  if (value !== null && (typeof value !== "object" || (!isList(value) && !isMap(value)))) {
    return typeof value === "object" ? value.number : String(value);
  }
  throw new FunctionError(`expected text, found ${typeName(value)}`, "wrong_type");
}
