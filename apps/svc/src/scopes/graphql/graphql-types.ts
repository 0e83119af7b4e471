import type { GraphqlTable, InputField, MutationFacts, QueryKind } from "./graphql-table.ts";
import type { Right } from "../rights.ts";

/**
 * How a field leads on.
 * - `leaf`: a scalar. `same`: a value of the same repository. `other`: perhaps one of another. `profile`: a person or team.
 */
export type FieldMark = "leaf" | "same" | "other" | "profile";

export interface TypeField {
  readonly mark: FieldMark;
  readonly target: string;
}

/**
 * - `type`: belongs to a repository, and its fields need `resource`; with `inherits` only where nothing led to it.
 * - `abstract`: a union or interface of such. `wrapper`: a connection or edge. `profile`: a person or team.
 */
export interface TypeFacts {
  readonly name: string;
  readonly kind: "type" | "abstract" | "wrapper" | "profile";
  readonly resource: Right | undefined;
  readonly inherits: boolean;
  readonly fields: ReadonlyMap<string, TypeField>;
}

/** The table of the GraphQL schema in maps: names of requests must not find what every object of JavaScript has. */
export interface GraphqlTypes {
  readonly types: ReadonlyMap<string, TypeFacts>;
  readonly queries: ReadonlyMap<string, { readonly kind: QueryKind; readonly target: string }>;
  readonly mutations: ReadonlyMap<string, MutationFacts>;
  readonly inputs: ReadonlyMap<string, ReadonlyMap<string, InputField>>;
}

export function readGraphqlTypes(table: GraphqlTable): GraphqlTypes {
  const types = Object.entries(table.types).map(([name, type]): [string, TypeFacts] => [
    name,
    {
      name,
      kind: type.kind,
      resource: type.kind === "type" ? type.resource : undefined,
      inherits: type.kind !== "type" || type.inherits === true,
      fields: readFields(type.fields),
    },
  ]);
  return {
    types: new Map(types),
    queries: new Map(Object.entries(table.queries)),
    mutations: new Map(Object.entries(table.mutations)),
    inputs: new Map(
      Object.entries(table.inputs).map(([name, fields]) => [name, new Map(Object.entries(fields))]),
    ),
  };
}

function readFields(fields: GraphqlTable["types"][string]["fields"]): ReadonlyMap<string, TypeField> {
  const found = new Map<string, TypeField>();
  for (const name of fields.leaf ?? []) found.set(name, { mark: "leaf", target: "" });
  for (const mark of ["same", "other", "profile"] as const) {
    for (const [name, target] of Object.entries(fields[mark] ?? {})) found.set(name, { mark, target });
  }
  return found;
}
