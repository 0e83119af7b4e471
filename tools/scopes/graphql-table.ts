import { GRAPHQL_RULES } from "../../apps/svc/src/scopes/graphql/graphql-rules.ts";
import type {
  GraphqlTable,
  InputField,
  MutationFacts,
} from "../../apps/svc/src/scopes/graphql/graphql-table.ts";
import { PROFILE_FIELDS } from "../../apps/svc/src/scopes/graphql/graphql-visible.ts";
import type { GraphqlSchema, SchemaField } from "./graphql-schema.ts";

const { types: TYPES, withheld: WITHHELD, mutations: MUTATIONS } = GRAPHQL_RULES;
const { profileTypes: PROFILE_TYPES, abstractTypes: ABSTRACT_TYPES, queries: QUERY_FIELDS } = GRAPHQL_RULES;

/** Part of the schema that the rules let limited tokens reach. @throws TypeError where the rules name what it does not have */
export function graphqlTable(schema: GraphqlSchema): GraphqlTable {
  return new TableMaker(schema).table();
}

type TableType = GraphqlTable["types"][string];
type Fields = TableType["fields"];
/** A field, with the group of {@link Fields} that it belongs to. */
type MarkedField = readonly [mark: keyof Fields, field: SchemaField];

/** Scalars that an abstract type shows: what a reference shows of any value. */
const ABSTRACT_LEAVES = ["id", "oid", "abbreviatedOid", "url", "resourcePath", "number"];

class TableMaker {
  readonly #schema: GraphqlSchema;
  readonly #wrappers = new Set<string>(["PageInfo"]);
  readonly #inputs = new Set<string>();

  constructor(schema: GraphqlSchema) {
    this.#schema = schema;
  }

  table(): GraphqlTable {
    const types: [string, TableType][] = [
      ...this.#typesWithRules(),
      ...this.#present(ABSTRACT_TYPES).map((name) => this.#abstract(name)),
      ...this.#present(PROFILE_TYPES).map((name) => this.#profile(name)),
    ];
    const queries = Object.entries(QUERY_FIELDS).map(([name, kind]) => {
      const target = this.#target(this.#schema.field("Query", name));
      return [name, { kind, target }] as const;
    });
    const mutations = Object.keys(MUTATIONS).map((name) => [name, this.#mutation(name)] as const);
    for (const [, { payload }] of mutations) types.push([payload, this.#payload(payload)]);
    // Both sets grow while they are read.
    for (const name of this.#wrappers) types.push([name, this.#wrapper(name)]);
    const inputs: [string, Record<string, InputField>][] = [];
    for (const name of this.#inputs) inputs.push([name, this.#inputFields(name)]);
    return {
      types: Object.fromEntries(types),
      queries: Object.fromEntries(queries),
      mutations: Object.fromEntries(mutations),
      inputs: Object.fromEntries(inputs),
    };
  }

  #present(names: readonly string[]): string[] {
    return names.filter((name) => this.#schema.has(name));
  }

  #typesWithRules(): [string, TableType][] {
    return Object.entries(TYPES).map(([name, rule]) => {
      const fields = this.#schema.fields(name);
      const same = rule.sameRepository ?? [];
      const unknown = same.filter((each) => !fields.some((field) => field.name === each));
      if (unknown.length > 0) throw new TypeError(`${name} has no field ${unknown.join(", ")}`);
      const right =
        "needs" in rule
          ? { resource: rule.needs }
          : ({ resource: rule.needsAtRoot, inherits: true } as const);
      return [name, { kind: "type", ...right, fields: this.#fields(name, fields, same) }];
    });
  }

  #abstract(name: string): [string, TableType] {
    const leaves = this.#schema.fields(name).filter((field) => ABSTRACT_LEAVES.includes(field.name));
    return [name, { kind: "abstract", fields: grouped(leaves.map((field) => ["leaf", field])) }];
  }

  #profile(name: string): [string, TableType] {
    const shown = this.#schema.fields(name).filter((field) => PROFILE_FIELDS.includes(field.name));
    const marked = shown.map((field): MarkedField => [field.isLeaf ? "leaf" : "profile", field]);
    return [name, { kind: "profile", fields: grouped(marked) }];
  }

  #mutation(name: string): MutationFacts {
    const rule = MUTATIONS[name];
    if (rule === undefined) throw new TypeError(`no rule is for the mutation ${name}`);
    const { target: payload, input = "" } = this.#schema.field("Mutation", name);
    this.#inputs.add(input);
    return "needs" in rule
      ? { needs: [...rule.needs], payload, input }
      : { needs: [], needsRightOf: rule.needsRightOf, payload, input };
  }

  #payload(name: string): TableType {
    const fields = this.#schema.fields(name);
    const all = fields.map((field) => field.name);
    return { kind: "type", resource: "metadata", inherits: true, fields: this.#fields(name, fields, all) };
  }

  #fields(type: string, fields: readonly SchemaField[], same: readonly string[]): Fields {
    const marked = fields
      .filter((field) => !WITHHELD.includes(`${type}.${field.name}`))
      .flatMap((field): MarkedField[] => {
        if (field.isLeaf) return [["leaf", field]];
        const end = this.#end(field.target);
        if (!this.#isKnown(end)) return [];
        this.#target(field);
        if (PROFILE_TYPES.includes(end)) return [["profile", field]];
        return [[same.includes(field.name) ? "same" : "other", field]];
      });
    return grouped(marked);
  }

  /** A connection or an edge: what it wraps is reached as the wrapper was. */
  #wrapper(name: string): TableType {
    const marked = this.#schema.fields(name).flatMap((field): MarkedField[] => {
      if (field.isLeaf) return [["leaf", field]];
      if (field.target !== "PageInfo" && !this.#isKnown(this.#end(field.target))) return [];
      this.#target(field);
      return [["same", field]];
    });
    return { kind: "wrapper", fields: grouped(marked) };
  }

  #isKnown(type: string): boolean {
    return Object.hasOwn(TYPES, type) || ABSTRACT_TYPES.includes(type) || PROFILE_TYPES.includes(type);
  }

  #inputFields(name: string): Record<string, InputField> {
    const entries = this.#schema.inputFields(name).map((field): [string, InputField] => {
      if (field.type === "ID") return [field.name, "id"];
      if (field.name === "repositoryNameWithOwner") return [field.name, "repository"];
      if (name === "CreatePullRequestInput" && field.name === "headRefName") return [field.name, "branch"];
      if (!field.isInputObject) return [field.name, "plain"];
      this.#inputs.add(field.type);
      return [field.name, { input: field.type }];
    });
    return Object.fromEntries(entries);
  }

  /** The type that a field leads to; noted, where it is a connection or an edge. */
  #target(field: SchemaField): string {
    if (field.target !== this.#end(field.target)) this.#wrappers.add(field.target);
    return field.target;
  }

  /** Type behind connections and edges. */
  #end(name: string): string {
    if (!/(?:Connection|Edge)$/.test(name)) return name;
    const fields = this.#schema.fields(name);
    const inner = fields.find((field) => field.name === "nodes" || field.name === "node");
    return inner === undefined ? name : inner.target;
  }
}

function grouped(marked: readonly MarkedField[]): Fields {
  const fields: Fields = {};
  for (const [mark, { name, target }] of marked) {
    if (mark === "leaf") (fields.leaf ??= []).push(name);
    else (fields[mark] ??= {})[name] = target;
  }
  return fields;
}
