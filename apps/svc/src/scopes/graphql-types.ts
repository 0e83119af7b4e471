import { GRAPHQL_TABLE } from "./graphql-table.ts";
import { rightNamed, type Right } from "./rights.ts";

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

export type QueryKind = "repository" | "node" | "search" | "profile" | "account" | "open";

export interface MutationFacts {
  /** Needed at level write; empty: the resource is that of the value which `subject` names. */
  readonly resources: readonly Right[];
  readonly subject: string | undefined;
  readonly payload: string;
  readonly input: string;
}

/** The table of the GraphQL schema, read. */
export interface GraphqlTypes {
  readonly types: ReadonlyMap<string, TypeFacts>;
  readonly queries: ReadonlyMap<string, { readonly kind: QueryKind; readonly target: string }>;
  readonly mutations: ReadonlyMap<string, MutationFacts>;
  /** Input types: fields by name, with `ID`, `REPOSITORY`, `HEAD`, an input type's name, or nothing for plain values. */
  readonly inputs: ReadonlyMap<string, ReadonlyMap<string, string | undefined>>;
}

const MARKS: Readonly<Record<string, FieldMark>> = { "=": "same", ">": "other", "@": "profile" };

export function readGraphqlTypes(table: string = GRAPHQL_TABLE): GraphqlTypes {
  const types = new Map<string, TypeFacts>();
  const queries = new Map<string, { kind: QueryKind; target: string }>();
  const mutations = new Map<string, MutationFacts>();
  const inputs = new Map<string, ReadonlyMap<string, string | undefined>>();
  for (const line of table.trim().split("\n")) {
    const [kind, name = "", ...rest] = line.split(" ");
    if (kind === "type") {
      const [right = "", ...fields] = rest;
      const inherits = right.startsWith("~");
      const resource = resourceOf(inherits ? right.slice(1) : right);
      types.set(name, { name, kind, resource, inherits, fields: readFields(fields) });
    } else if (kind === "abstract" || kind === "wrapper" || kind === "profile") {
      types.set(name, { name, kind, resource: undefined, inherits: true, fields: readFields(rest) });
    } else if (kind === "query") {
      queries.set(name, { kind: rest[0] as QueryKind, target: rest[1] ?? "" });
    } else if (kind === "mutation") {
      const [right = "", payload = "", input = ""] = rest;
      const subject = right.startsWith("@") ? right.slice(1) : undefined;
      const resources = subject === undefined ? right.split("+").map(resourceOf) : [];
      mutations.set(name, { resources, subject, payload, input });
    } else if (kind === "input") {
      inputs.set(name, new Map(rest.map((field) => [field.split(":")[0] ?? "", field.split(":")[1]])));
    }
  }
  return { types, queries, mutations, inputs };
}

function readFields(texts: readonly string[]): ReadonlyMap<string, TypeField> {
  return new Map(
    texts.map((text) => {
      const [, name = "", mark = "", target = ""] = /^(\w+)(?:([=>@])(\w+))?$/.exec(text) ?? [];
      return [name, { mark: MARKS[mark] ?? "leaf", target }];
    }),
  );
}

function resourceOf(text: string): Right {
  const found = rightNamed(text);
  if (found === undefined) throw new TypeError(`the GraphQL table has an unknown resource: ${text}`);
  return found;
}
