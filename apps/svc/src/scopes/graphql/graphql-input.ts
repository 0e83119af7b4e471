import type { InputField } from "./graphql-table.ts";
import type { GraphqlTypes } from "./graphql-types.ts";
import { GraphqlRefusal } from "./graphql-walk.ts";

/** Ids and repositories that the input of a mutation names. */
export interface NamedByInput {
  readonly ids: string[];
  /** `owner/name` each. */
  readonly repositories: string[];
}

/**
 * Collects the ids and repositories in a mutation's input, by the schema's input types.
 *
 * @throws GraphqlRefusal for fields and values that the schema does not have there
 */
export function collectNames(schema: GraphqlTypes, type: string, value: unknown, into: NamedByInput): void {
  const fields = schema.inputs.get(type);
  if (fields === undefined || typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new GraphqlRefusal(`the input is not one of type ${type}`);
  }
  for (const [name, given] of Object.entries(value)) {
    const kind = fields.get(name);
    if (kind === undefined) throw new GraphqlRefusal(`${type} has a field that is not in the schema`);
    if (kind === "plain" || given === null || given === undefined) continue;
    // A single value is a list of one.
    for (const each of (Array.isArray(given) ? given : [given]).flat())
      collectOne(schema, kind, name, each, into);
  }
}

function collectOne(
  schema: GraphqlTypes,
  kind: Exclude<InputField, "plain">,
  name: string,
  value: unknown,
  into: NamedByInput,
): void {
  if (kind === "id") {
    if (typeof value !== "string") throw new GraphqlRefusal(`${name} must be an id`);
    into.ids.push(value);
  } else if (kind === "repository") {
    if (typeof value !== "string") throw new GraphqlRefusal(`${name} must be owner/name`);
    into.repositories.push(value);
  } else if (kind === "branch") {
    if (typeof value !== "string" || value.includes(":")) {
      throw new GraphqlRefusal(`${name} names a branch of another repository`);
    }
  } else collectNames(schema, kind.input, value, into);
}
