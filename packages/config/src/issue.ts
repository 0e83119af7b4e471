import type { z } from "zod";
import { suggest } from "@devplat/base/suggest";

type Issue = z.core.$ZodIssue;

/** Text of a path: `rules[0].target.path`. */
export function keyText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? String(step) : `.${String(step)}`;
  }
  return text;
}

/**
 * Messages for a schema issue, each with its path. zod's own text is used only where it cannot quote
 * the input: for a custom check, whose message is from this repository.
 */
export function describeIssue(
  schema: z.ZodType,
  issue: Issue,
): { path: readonly PropertyKey[]; message: string }[] {
  if (issue.code === "unrecognized_keys") {
    const known = keysAt(schema, issue.path);
    return issue.keys.map((key) => {
      const meant = suggest(key, known);
      return {
        path: [...issue.path, key],
        message: `unknown key${meant === undefined ? "" : `; did you mean '${meant}'?`}`,
      };
    });
  }
  if (issue.code === "invalid_union") {
    const own = issue.errors.find((branch) => branch.some((inner) => inner.path.length > 0));
    const inner = own?.find((candidate) => candidate.path.length > 0);
    if (inner !== undefined) return describeIssue(schema, { ...inner, path: [...issue.path, ...inner.path] });
    const values = discriminatorValues(schema, issue.path);
    if (values.length > 0) return [{ path: issue.path, message: `expected one of: ${values.join(", ")}` }];
  }
  return [{ path: issue.path, message: messageFor(issue) }];
}

/** Values of the key that selects a member of a union, if `path` is such a key. */
function discriminatorValues(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  const union = schemaAt(schema, path.slice(0, -1));
  const { discriminator, options } = (union?._zod.def ?? {}) as {
    discriminator?: string;
    options?: readonly z.core.$ZodObject[];
  };
  if (discriminator === undefined || discriminator !== path.at(-1)) return [];
  return (options ?? []).flatMap((option) =>
    [...(option._zod.def.shape[discriminator]?._zod.values ?? [])].map(String),
  );
}

function messageFor(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined && issue.message.includes("undefined")
        ? "required, but missing"
        : issue.message.startsWith("expected ")
          ? issue.message
          : `expected ${typeName(issue.expected)}`;
    case "invalid_value":
      return `expected one of: ${issue.values.map(String).join(", ")}`;
    case "too_small":
      return issue.origin === "string" || issue.origin === "array"
        ? "must not be empty"
        : `must be at least ${issue.minimum}`;
    case "too_big":
      return `must be at most ${issue.maximum}`;
    case "custom":
      return issue.message;
    case "invalid_format":
      return issue.format === "regex" ? issue.message : `not a valid ${issue.format}`;
    default:
      return "not a valid value";
  }
}

function typeName(expected: string): string {
  const names: Record<string, string> = {
    boolean: "true or false",
    object: "a mapping",
    record: "a mapping",
    array: "a list",
    string: "a text",
    number: "a number",
    int: "a whole number",
  };
  return names[expected] ?? expected;
}

/** Keys of the schema at `path`. */
export function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  const { shape = {} } = (schemaAt(schema, path)?._zod.def ?? {}) as { shape?: object };
  return Object.keys(shape);
}

/** The schema at `path`, without optional, default and the like; undefined if there is none. */
export function schemaAt(schema: z.ZodType, path: readonly PropertyKey[]): z.ZodType | undefined {
  let current = unwrap(schema);
  for (const step of path) {
    const next = childSchema(current, step);
    if (next === undefined) return undefined;
    current = unwrap(next);
  }
  return current;
}

interface Def {
  readonly type: string;
  readonly innerType?: z.ZodType;
  readonly in?: z.ZodType;
  readonly shape?: Record<string, z.ZodType>;
  readonly element?: z.ZodType;
  readonly valueType?: z.ZodType;
}

function unwrap(schema: z.ZodType): z.ZodType {
  let current = schema;
  for (;;) {
    const def = current._zod.def as unknown as Def;
    const inner = def.innerType ?? (def.type === "pipe" ? def.in : undefined);
    if (inner === undefined) return current;
    current = inner;
  }
}

function childSchema(schema: z.ZodType, step: PropertyKey): z.ZodType | undefined {
  const def = schema._zod.def as unknown as Def;
  if (def.shape !== undefined) return def.shape[String(step)];
  return typeof step === "number" ? def.element : def.valueType;
}
