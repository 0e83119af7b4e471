import { AppError } from "@devplat/base";
import { nameList } from "@devplat/base/name-list";
import { BUILTINS, index, LAZY_FUNCTIONS, type LazyFunction } from "./builtins.ts";
import { FunctionError, TemplateError, type Place, type TemplateErrorCode } from "./errors.ts";
import { show } from "./format.ts";
import type { FunctionMap } from "./function.ts";
import { MAX_CALL_DEPTH, MAX_OUTPUT, MAX_STEPS, TEXT_PER_STEP } from "./limits.ts";
import type { Branch, Command, Node, NodeList, Operand, Pipeline } from "./node.ts";
import type { ParsedTemplate } from "./parser.ts";
import { isList, isMap, isTrue, sortedEntries, typeName, type TemplateData, type Value } from "./value.ts";

/** Description of a value that an action will print. */
export interface ValueContext extends Place {
  /**
   * The action ends in a function that `makesSafe` (quote, base64encode, toJSON, raw), or prints a constant of the
   * template itself.
   */
  readonly safe: boolean;
  /** Position of the value in the output, in UTF-16 code units. */
  readonly offset: number;
  /** Whether the printed value is a text, not a number, boolean, list or map. */
  readonly isText: boolean;
  /** Function that made the value, with its last argument. Undefined if none did. */
  readonly call: { readonly name: string; readonly input: Value } | undefined;
  /** Names of all functions that the action called. */
  readonly functions: readonly string[];
  /** Values that the action read from the data, and the results of functions that read from outside. */
  readonly sources: readonly Value[];
}

export interface ExecuteOptions {
  /**
   * Gets each printed value, and returns the text to print. The caller can throw an error, record the value, or return a
   * placeholder. The caller of execute gets the thrown error unchanged.
   */
  readonly onValue?: (text: string, context: ValueContext) => string;
}

/** Runs a parsed template. @throws TemplateError, and errors of `onValue` */
export function evaluate(
  name: string,
  template: ParsedTemplate,
  data: TemplateData,
  functions: FunctionMap,
  options: ExecuteOptions,
): string {
  return new Evaluation(name, template, functions, options).run(data);
}

/** Whether the name is a function of the language itself. */
export function isBuiltin(name: string): boolean {
  return BUILTINS.has(name) || name === "index" || isLazy(name);
}

/** A field that the data does not have. To print it or pass it on is an error. */
class Missing {
  readonly path: readonly string[];
  readonly place: Place;
  /** Names of the existing fields. */
  readonly known: readonly string[];

  constructor(path: readonly string[], place: Place, known: readonly string[] = []) {
    this.path = path;
    this.place = place;
    this.known = known;
  }
}

/** Functions with results from outside of the template. */
const READING_FUNCTIONS: ReadonlySet<string> = new Set(["env", "secret", "username"]);

/** Values that one action read, and functions that it called. */
interface ActionTrace {
  readonly sources: Value[];
  readonly functions: string[];
  call: { readonly name: string; readonly input: Value } | undefined;
}

type Result = Value | Missing;
type Flow = "next" | "break" | "continue";

interface Variable {
  readonly name: string;
  value: Result;
}

class Evaluation {
  readonly #name: string;
  readonly #template: ParsedTemplate;
  readonly #functions: FunctionMap;
  readonly #options: ExecuteOptions;
  #variables: Variable[] = [];
  readonly #output: string[] = [];
  #length = 0;
  #steps = 0;
  #depth = 0;
  #trace: ActionTrace = { sources: [], functions: [], call: undefined };

  constructor(name: string, template: ParsedTemplate, functions: FunctionMap, options: ExecuteOptions) {
    this.#name = name;
    this.#template = template;
    this.#functions = functions;
    this.#options = options;
  }

  run(data: TemplateData): string {
    this.#variables = [{ name: "$", value: data }];
    this.#list(this.#template.body, data);
    return this.#output.join("");
  }

  #list(nodes: NodeList, dot: Value): Flow {
    for (const node of nodes) {
      const flow = this.#node(node, dot);
      if (flow !== "next") return flow;
    }
    return "next";
  }

  #node(node: Node, dot: Value): Flow {
    switch (node.kind) {
      case "text":
        this.#print(node.text, { line: 1, column: 1 });
        return "next";
      case "action":
        this.#action(node.pipeline, node.place, dot);
        return "next";
      case "if":
      case "with":
        return this.#scoped(() => this.#condition(node, dot));
      case "range":
        return this.#scoped(() => this.#range(node, dot));
      case "template":
        this.#call(
          node.name,
          node.place,
          node.pipeline === undefined ? null : this.#pipeline(node.pipeline, dot),
        );
        return "next";
      default:
        return node.kind;
    }
  }

  #action(pipeline: Pipeline, place: Place, dot: Value): void {
    this.#trace = { sources: [], functions: [], call: undefined };
    const result = this.#pipeline(pipeline, dot);
    if (pipeline.variables.length > 0) return;
    const value = this.#present(result);
    if (value === null) {
      this.#fail("null_value", "a null cannot be printed", place, 'Give it a value: `.name | default "…"`.');
    }
    const text = show(value);
    const { onValue } = this.#options;
    const { call, functions, sources } = this.#trace;
    const context: ValueContext = {
      ...place,
      safe: this.#isSafe(pipeline),
      offset: this.#length,
      isText: typeof value === "string",
      call: call !== undefined && call.name === lastFunction(pipeline) ? call : undefined,
      functions,
      sources,
    };
    this.#print(onValue === undefined ? text : onValue(text, context), place);
  }

  #condition(node: Branch, dot: Value): Flow {
    const result = this.#pipeline(node.pipeline, dot);
    if (result instanceof Missing || !isTrue(result)) return this.#list(node.otherwise, dot);
    return this.#list(node.body, node.kind === "with" ? result : dot);
  }

  #range(node: Branch, dot: Value): Flow {
    const { variables, isAssignment, place } = node.pipeline;
    const over = this.#present(this.#pipeline(node.pipeline, dot));
    const mark = this.#variables.length;
    let ran = false;
    for (const [key, value] of this.#items(over, variables.length, place)) {
      ran = true;
      this.#step(place);
      const values = variables.length === 2 ? [key, value] : [value];
      for (const [position, name] of variables.entries()) {
        const item = values[position] ?? null;
        if (isAssignment) this.#assign(name, item, place);
        else this.#variables[mark - variables.length + position] = { name, value: item };
      }
      const flow = this.#list(node.body, value);
      this.#variables.length = mark;
      if (flow === "break") break;
    }
    return ran ? "next" : this.#list(node.otherwise, dot);
  }

  *#items(over: Value, variables: number, place: Place): Iterable<readonly [Value, Value]> {
    if (over === null) return;
    if (typeof over === "bigint") {
      if (variables > 1) this.#fail("wrong_type", "a range over a number has one variable", place);
      for (let count = 0n; count < over; count++) yield [count, count];
    } else if (typeof over === "object" && isList(over)) {
      for (const [position, value] of over.entries()) yield [BigInt(position), value];
    } else if (typeof over === "object" && isMap(over)) yield* sortedEntries(over);
    else this.#fail("wrong_type", `range cannot go over ${typeName(over)}`, place);
  }

  #call(name: string, place: Place, argument: Result): void {
    const body = this.#template.defined.get(name);
    if (body === undefined)
      this.#fail("no_template", `the template ${JSON.stringify(name)} is not defined`, place);
    if (this.#depth === MAX_CALL_DEPTH)
      this.#fail("limit", `templates call each other ${MAX_CALL_DEPTH} deep`, place);
    const dot = this.#present(argument);
    const outer = this.#variables;
    this.#variables = [{ name: "$", value: dot }];
    this.#depth++;
    this.#list(body, dot);
    this.#depth--;
    this.#variables = outer;
  }

  #scoped(action: () => Flow): Flow {
    const mark = this.#variables.length;
    const flow = action();
    this.#variables.length = mark;
    return flow;
  }

  #pipeline(pipeline: Pipeline, dot: Value): Result {
    let result: Result | undefined;
    for (const command of pipeline.commands) result = this.#command(command, dot, result);
    const value = result ?? null;
    for (const name of pipeline.variables) {
      if (pipeline.isAssignment) this.#assign(name, value, pipeline.place);
      else this.#variables.push({ name, value });
    }
    return value;
  }

  /** @param piped the value from `|`, if any */
  #command(command: Command, dot: Value, piped: Result | undefined): Result {
    this.#step(command.place);
    const [head, ...args] = command.operands;
    if (head.kind === "function") return this.#function(head.name, head.place, args, dot, piped);
    if (args.length > 0 || piped !== undefined) {
      this.#fail("wrong_type", "only a function takes arguments", args[0]?.place ?? head.place);
    }
    if (head.kind === "nil") this.#fail("wrong_type", "nil alone is not a command", head.place);
    return this.#operand(head, dot);
  }

  #operand(operand: Operand, dot: Value): Result {
    const result = this.#evaluate(operand, dot);
    const isRead = ["dot", "field", "variable", "chain"].includes(operand.kind);
    if (isRead && !(result instanceof Missing)) this.#trace.sources.push(result);
    return result;
  }

  #evaluate(operand: Operand, dot: Value): Result {
    switch (operand.kind) {
      case "dot":
        return dot;
      case "nil":
        return null;
      case "bool":
      case "number":
      case "string":
        return operand.value;
      case "field":
        return this.#fields(dot, operand.fields, operand.place);
      case "variable":
        return this.#fields(this.#variable(operand.name, operand.place).value, operand.fields, operand.place);
      case "chain":
        return this.#fields(this.#operand(operand.of, dot), operand.fields, operand.place);
      case "pipeline":
        return this.#pipeline(operand.pipeline, dot);
      default:
        return this.#function(operand.name, operand.place, [], dot, undefined);
    }
  }

  /** Looks up field names in maps. A missing value and a null have no fields. */
  #fields(start: Result, fields: readonly string[], place: Place): Result {
    let result = start;
    for (const [position, field] of fields.entries()) {
      if (result instanceof Missing)
        result = new Missing([...result.path, field], result.place, result.known);
      else if (result === null) result = new Missing(fields.slice(0, position + 1), place);
      else if (typeof result === "object" && isMap(result)) {
        const value: Value | undefined = result.get(field);
        if (value === undefined && field === "Data" && fields[position + 1] === "data") {
          // Also where a missing key counts as empty, because the author of the template means the fields.
          this.#missing(new Missing(fields, place));
        }
        result =
          value ??
          (value === null ? null : new Missing(fields.slice(0, position + 1), place, [...result.keys()]));
      } else this.#fail("wrong_type", `"${field}" cannot be looked up in ${typeName(result)}`, place);
    }
    return result;
  }

  #function(
    name: string,
    place: Place,
    args: readonly Operand[],
    dot: Value,
    piped: Result | undefined,
  ): Result {
    if (isLazy(name)) {
      const result = this.#lazy(name, place, args, dot, piped);
      this.#trace.functions.push(name);
      this.#trace.call = undefined;
      return result;
    }
    const values = args.map((arg) => this.#present(this.#operand(arg, dot)));
    if (piped !== undefined) values.push(this.#present(piped));
    this.#trace.functions.push(name);
    this.#trace.call = { name, input: values.at(-1) ?? null };
    if (name === "index") {
      this.#checkArity(name, [1, Infinity], values.length, place);
      const [item = null, ...indexes] = values;
      const found = this.#guard(name, place, () => index(item, indexes));
      return (
        found ??
        (found === null
          ? null
          : new Missing(
              indexes.map((key) => show(key)),
              place,
            ))
      );
    }
    const called = this.#functions.get(name) ?? BUILTINS.get(name);
    if (called === undefined) this.#fail("unknown_function", `there is no function "${name}"`, place);
    this.#checkArity(name, called.arity, values.length, place);
    for (const value of values) this.#step(place, workOf(value));
    const result = this.#guard(name, place, () => called.call(values));
    this.#step(place, workOf(result));
    if (typeof result === "string" && result.length > MAX_OUTPUT) {
      this.#fail("limit", `${name}: the text is longer than ${MAX_OUTPUT}`, place);
    }
    if (READING_FUNCTIONS.has(name)) this.#trace.sources.push(result);
    return result;
  }

  #lazy(
    name: LazyFunction,
    place: Place,
    args: readonly Operand[],
    dot: Value,
    piped: Result | undefined,
  ): Result {
    const count = args.length + (piped === undefined ? 0 : 1);
    this.#checkArity(name, LAZY_FUNCTIONS[name], count, place);
    if (name === "and" || name === "or") {
      let result: Result = null;
      for (const arg of args) {
        result = this.#operand(arg, dot);
        if (isTruthy(result) === (name === "or")) return result;
      }
      return piped ?? result;
    }
    const results = args.map((arg) => this.#operand(arg, dot));
    if (piped !== undefined) results.push(piped);
    const [first = null, second = null] = results;
    if (name === "not") return !isTruthy(first);
    return isTruthy(second) ? second : first;
  }

  #checkArity(name: string, [least, most]: readonly [number, number], count: number, place: Place): void {
    if (count >= least && count <= most) return;
    const wanted =
      least === most ? String(least) : most === Infinity ? `at least ${least}` : `${least} to ${most}`;
    this.#fail("function_failed", `${name} takes ${wanted} arguments, not ${count}`, place);
  }

  #guard<T>(name: string, place: Place, action: () => T): T {
    try {
      return action();
    } catch (error) {
      // An AppError never quotes a value. Other errors might.
      if (!(error instanceof AppError)) throw error;
      const code = error instanceof FunctionError ? error.code : "function_failed";
      throw new TemplateError(code, `${name}: ${error.message}`, this.#name, place, {
        cause: error,
        ...(error.hint !== undefined && { hint: error.hint }),
      });
    }
  }

  #present(result: Result): Value {
    return result instanceof Missing ? this.#missing(result) : result;
  }

  #missing({ path, place, known }: Missing): never {
    const dotted = `.${path.join(".")}`;
    const inside = path[1] === "data" ? path.slice(2) : path.slice(1);
    const hint =
      path[0] === "Data"
        ? `The fields are at the root: write .${inside.join(".") || "name"} instead of ${dotted}.`
        : `${known.length === 0 ? "" : `There is: ${nameList(known)}. `}If it may be absent, write \`${dotted} | default "…"\` or test it with if.`;
    this.#fail("missing_key", `there is no ${dotted}`, place, hint);
  }

  #variable(name: string, place: Place): Variable {
    const variable = this.#variables.findLast((each) => each.name === name);
    return variable ?? this.#fail("wrong_type", `the variable ${name} has no value here`, place);
  }

  #assign(name: string, value: Result, place: Place): void {
    this.#variable(name, place).value = value;
  }

  #isSafe(pipeline: Pipeline): boolean {
    const last = pipeline.commands.at(-1);
    if (last === undefined) return false;
    const [head, ...rest] = last.operands;
    if (head.kind === "function") {
      return (this.#functions.get(head.name) ?? BUILTINS.get(head.name))?.makesSafe === true;
    }
    if (rest.length > 0 || pipeline.commands.length > 1) return false;
    if (head.kind === "pipeline") return this.#isSafe(head.pipeline);
    return head.kind === "string" || head.kind === "number" || head.kind === "bool";
  }

  #print(text: string, place: Place): void {
    this.#length += text.length;
    if (this.#length > MAX_OUTPUT) this.#fail("limit", `the output is longer than ${MAX_OUTPUT}`, place);
    this.#output.push(text);
  }

  #step(place: Place, steps = 1): void {
    this.#steps += steps;
    if (this.#steps > MAX_STEPS)
      this.#fail("limit", `the template takes more than ${MAX_STEPS} steps`, place);
  }

  #fail(code: TemplateErrorCode, problem: string, place: Place, hint?: string): never {
    throw new TemplateError(code, problem, this.#name, place, hint === undefined ? {} : { hint });
  }
}

/** Function that gives the result of a pipeline, or undefined if an operand does. */
function lastFunction(pipeline: Pipeline): string | undefined {
  const head = pipeline.commands.at(-1)?.operands[0];
  if (head?.kind === "pipeline") return lastFunction(head.pipeline);
  return head?.kind === "function" ? head.name : undefined;
}

/** Steps that an argument or a result adds to a function call. */
function workOf(value: Value): number {
  if (typeof value === "string") return Math.floor(value.length / TEXT_PER_STEP);
  return typeof value === "object" && value !== null && isList(value) ? value.length : 0;
}

function isTruthy(result: Result): boolean {
  return !(result instanceof Missing) && isTrue(result);
}

function isLazy(name: string): name is LazyFunction {
  return Object.hasOwn(LAZY_FUNCTIONS, name);
}
