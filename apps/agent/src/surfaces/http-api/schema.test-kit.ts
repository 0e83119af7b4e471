import type { Json } from "@devplat/web-kit/openapi";

/**
 * Faults of a value, by the part of JSON Schema that our document uses. For tests. Stricter than the
 * standard: a property that is not described is a fault, because the document has to be complete.
 */
export function schemaFaults(
  value: unknown,
  schema: Json,
  components: Readonly<Record<string, Json>>,
  at = "$",
): string[] {
  const faults = (part: unknown, shape: unknown, where: string): string[] =>
    schemaFaults(part, shape as Json, components, where);
  const ref = schema["$ref"];
  if (typeof ref === "string") return faults(value, components[ref.split("/").at(-1) ?? ""] ?? {}, at);
  const choices = schema["oneOf"] ?? schema["anyOf"];
  if (Array.isArray(choices)) {
    const tries = choices.map((each) => faults(value, each, at));
    return tries.some((each) => each.length === 0) ? [] : tries.flat();
  }
  const types = [schema["type"] ?? []].flat() as string[];
  if (
    types.length > 0 &&
    !types.includes(typeOf(value)) &&
    !(types.includes("number") && typeOf(value) === "integer")
  )
    return [`${at}: ${typeOf(value)}, not ${types.join(" or ")}`];
  if (Array.isArray(schema["enum"]) && !schema["enum"].includes(value))
    return [`${at}: not one of its values`];
  if ("const" in schema && schema["const"] !== value) return [`${at}: not ${String(schema["const"])}`];
  if (
    schema["format"] === "date-time" &&
    value !== null &&
    (typeof value !== "string" || Number.isNaN(Date.parse(value)))
  )
    return [`${at}: no time`];
  if (Array.isArray(value))
    return value.flatMap((each, index) => faults(each, schema["items"] ?? {}, `${at}[${index}]`));
  if (typeof value !== "object" || value === null || schema["type"] !== "object") return [];
  const properties = (schema["properties"] ?? {}) as Record<string, Json>;
  const rest = schema["additionalProperties"];
  const missing = ((schema["required"] ?? []) as string[]).filter((name) => !(name in value));
  return [
    ...missing.map((name) => `${at}.${name}: missing`),
    ...Object.entries(value).flatMap(([name, each]) => {
      const shape = properties[name] ?? (rest === true ? {} : rest);
      if (shape !== undefined && shape !== false) return faults(each, shape, `${at}.${name}`);
      const open = shape !== false && Object.keys(properties).length === 0;
      return open ? [] : [`${at}.${name}: not described`];
    }),
  ];
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}
