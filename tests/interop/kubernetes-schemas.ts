import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { kubernetesSchemas } from "@devplat/testkit";

/** Part of OpenAPI 3 that the API server and definitions of custom resources use. */
interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-group-version-kind"?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}
type Definitions = Readonly<Record<string, Schema>>;

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly [key: string]: unknown };
  readonly [key: string]: unknown;
}

/** Type of JSON that stands for both. */
const NUMBERS = ["integer", "number"];

/**
 * Checks a manifest against the schema that the API server publishes for its kind. Unknown fields are faults, as with
 * `kubectl apply --validate=strict`.
 *
 * @returns one line for each fault
 */
export async function manifestFaults(manifest: Manifest): Promise<string[]> {
  const { schema, definitions } = await schemaOf(manifest);
  return faults(manifest, schema, definitions, manifest.kind);
}

async function schemaOf({
  apiVersion,
  kind,
}: Manifest): Promise<{ readonly schema: Schema; readonly definitions: Definitions }> {
  const folder = kubernetesSchemas();
  const [group = "", version = ""] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  const file = group === "" ? `api__${version}` : `apis__${group}__${version}`;
  const path = join(folder, `${file}_openapi.json`);
  if (existsSync(path)) {
    const text = await readFile(path, "utf8");
    const { components } = JSON.parse(text) as { components: { schemas: Definitions } };
    const schema = Object.values(components.schemas).find((each) =>
      each["x-kubernetes-group-version-kind"]?.some(
        (one) => one.group === group && one.version === version && one.kind === kind,
      ),
    );
    if (schema === undefined) throw new Error(`the API server knows no ${kind} in ${apiVersion}`);
    return { schema, definitions: components.schemas };
  }
  const definition = join(folder, `${group}_${kind.toLowerCase()}s.yaml`);
  if (!existsSync(definition)) throw new Error(`the API server knows no ${apiVersion}`);
  const { spec } = parse(await readFile(definition, "utf8")) as {
    spec: { versions: { name: string; schema: { openAPIV3Schema: Schema } }[] };
  };
  const found = spec.versions.find(({ name }) => name === version);
  if (found === undefined) throw new Error(`no ${kind} in ${apiVersion}`);
  return { schema: found.schema.openAPIV3Schema, definitions: {} };
}

function faults(value: unknown, schema: Schema, definitions: Definitions, path: string): string[] {
  const { $ref, allOf, oneOf } = schema;
  if ($ref !== undefined) {
    const target = definitions[$ref.split("/").at(-1) ?? ""];
    return target === undefined ? [`${path}: no schema ${$ref}`] : faults(value, target, definitions, path);
  }
  if (schema["x-kubernetes-int-or-string"] === true) {
    return ["string", "number"].includes(typeof value) ? [] : [`${path}: neither a number nor a string`];
  }
  if (allOf !== undefined) return allOf.flatMap((each) => faults(value, each, definitions, path));
  if (oneOf !== undefined) {
    const tries = oneOf.map((each) => faults(value, each, definitions, path));
    return tries.some((each) => each.length === 0) ? [] : (tries[0] ?? []);
  }
  const type = typeOf(value);
  if (schema.type !== undefined && schema.type !== type && !(schema.type === "number" && type === "integer"))
    return [`${path}: is ${type}, and must be ${schema.type}`];
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return [`${path}: ${String(value)} is unknown`];
  if (schema.pattern !== undefined && typeof value === "string" && !new RegExp(schema.pattern).test(value))
    return [`${path}: ${value} does not match ${schema.pattern}`];
  if (Array.isArray(value)) {
    const { items = {} } = schema;
    return value.flatMap((each, index) => faults(each, items, definitions, `${path}[${index}]`));
  }
  return type === "object" ? objectFaults(value as Record<string, unknown>, schema, definitions, path) : [];
}

function objectFaults(
  value: Readonly<Record<string, unknown>>,
  schema: Schema,
  definitions: Definitions,
  path: string,
): string[] {
  const { properties = {}, additionalProperties, required = [] } = schema;
  // The definition of a custom resource says no more than "object" of its metadata, which the API server checks itself.
  const isOpen =
    schema["x-kubernetes-preserve-unknown-fields"] === true ||
    additionalProperties === true ||
    (schema.properties === undefined && additionalProperties === undefined);
  const missing = required.filter((key) => value[key] === undefined).map((key) => `${path}: has no ${key}`);
  const inside = Object.entries(value).flatMap(([key, each]) => {
    const own =
      properties[key] ?? (typeof additionalProperties === "object" ? additionalProperties : undefined);
    if (own !== undefined) return faults(each, own, definitions, `${path}.${key}`);
    return isOpen ? [] : [`${path}: unknown field ${key}`];
  });
  return [...missing, ...inside];
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (value === null) return "null";
  if (typeof value === "number") return NUMBERS[Number.isInteger(value) ? 0 : 1] ?? "";
  return typeof value;
}
