import type { RequiredPermission, TokenLimits } from "../required-permissions.ts";
import type { FieldNode, SelectionSetNode } from "graphql/language";
import { isListed } from "../token-limits.ts";
import { GraphqlDocuments, type SelectedOperation } from "./graphql-document.ts";
import type { GraphqlRequest } from "./graphql-request.ts";
import { collectNames } from "./graphql-input.ts";
import type { GraphqlTypes } from "./graphql-types.ts";
import { argumentValues, variableValues } from "./graphql-values.ts";
import { GraphqlRefusal, GraphqlWalk, isProfileField } from "./graphql-walk.ts";
import { refusedToLimited, type IdResolver, type Decision, type NodeFacts } from "../decision.ts";
import { contentOfMutation, contentOf, pathsOfCommit, type ContentOfMutation } from "./graphql-workflows.ts";
import { RIGHTS, permissionOf, type Right } from "../rights.ts";
import { isWorkflowPath } from "../workflow-writes.ts";
import { issueKindsOfSearch, repositoriesOfSearch } from "../search-query.ts";

/** Maximum ids in one request: the code host takes 100 in `nodes(ids:)`. */
const MAX_IDS = 100;

/** Decides on GraphQL requests by the table of the published schema. Refuses everything else. */
export class GraphqlAuthorizer {
  readonly #documents = new GraphqlDocuments();
  readonly #schema: GraphqlTypes;

  constructor(schema: GraphqlTypes) {
    this.#schema = schema;
  }

  /** @param limits of the token: ids of other repositories are refused as unknown ones are */
  async decide(request: GraphqlRequest, limits: TokenLimits, resolver: IdResolver): Promise<Decision> {
    const selected = this.#documents.select(request);
    if (typeof selected === "string") return refusedToLimited("graphql", selected);
    const { operation } = selected;
    const rule = `${operation.operation} ${operation.name?.value ?? ""}`.trim();
    try {
      return await new Operation(this.#schema, selected, request.variables).decide(rule, limits, resolver);
    } catch (error) {
      if (!(error instanceof GraphqlRefusal)) throw error;
      const refused = refusedToLimited(rule, error.message);
      return error.conceals ? { ...refused, conceals: true } : refused;
    }
  }
}

/** The decision on one request. */
class Operation {
  readonly #schema: GraphqlTypes;
  readonly #selected: SelectedOperation;
  readonly #variables: ReadonlyMap<string, unknown>;
  readonly #walk: GraphqlWalk;
  readonly #repositories: string[] = [];
  readonly #ids = new Set<string>();
  readonly #written = new Set<Right>();
  readonly #adds: ContentOfMutation[] = [];
  /** Ids whose type determines the written resource. */
  readonly #subjects = new Set<string>();

  constructor(schema: GraphqlTypes, selected: SelectedOperation, given: Readonly<Record<string, unknown>>) {
    this.#schema = schema;
    this.#selected = selected;
    this.#variables = variableValues(selected.operation, given);
    this.#walk = new GraphqlWalk(schema, selected.fragments, this.#variables);
  }

  async decide(rule: string, limits: TokenLimits, resolver: IdResolver): Promise<Decision> {
    const { operation } = this.#selected;
    const isMutation = operation.operation === "mutation";
    if (!isMutation && operation.operation !== "query") {
      throw new GraphqlRefusal("only queries and mutations are taken");
    }
    let action = rule;
    for (const field of this.#walk.fieldsOf(operation.selectionSet)) {
      if (field.name.value === "__typename") continue;
      if (isMutation) {
        this.#mutation(field);
        action = `mutation ${field.name.value}`;
      } else this.#query(field);
    }
    const found = await this.#resolve(limits, resolver, isMutation);
    const adds = this.#adds.map((each) => contentOf(each, found));
    const needs: RequiredPermission[] = RIGHTS.flatMap((right): RequiredPermission[] => {
      if (this.#written.has(right)) return [permissionOf(right, "write")];
      // Every token holds metadata:read.
      return right !== "metadata" && this.#walk.read.has(right) ? [permissionOf(right, "read")] : [];
    });
    const repositories = [...new Set(this.#repositories).values()];
    const required = { needs, repositories };
    // The request concerns no repository: profiles of people, the schema, the rate limit.
    const anyRepository = !isMutation && repositories.length === 0 && needs.length === 0;
    return {
      kind: "requires",
      rule: action,
      required: anyRepository ? { ...required, anyRepository } : required,
      adds,
    };
  }

  #query(field: FieldNode): void {
    const name = field.name.value;
    if (name === "__schema" || name === "__type") return;
    const facts = this.#schema.queries.get(name);
    if (facts === undefined) throw new GraphqlRefusal(`Query.${name} is not for limited tokens`);
    const values = this.#arguments(field);
    switch (facts.kind) {
      case "open":
        return;
      case "profile":
        return this.#walk.walk(field.selectionSet, facts.target, "profile");
      case "repository":
        this.#repository(values.get("owner"), values.get("name"));
        return this.#walk.walk(field.selectionSet, facts.target);
      case "account":
        return this.#account(field.selectionSet, values.get("login"));
      case "search":
        this.#search(values);
        return this.#walk.walk(field.selectionSet, facts.target);
      case "node":
        for (const id of name === "nodes" ? [values.get("ids")].flat() : [values.get("id")]) this.#id(id);
        return this.#walk.walk(field.selectionSet, facts.target, "same", true);
    }
  }

  #mutation(field: FieldNode): void {
    const name = field.name.value;
    const facts = this.#schema.mutations.get(name);
    if (facts === undefined) throw new GraphqlRefusal(`Mutation.${name} is not for limited tokens`);
    const input = this.#arguments(field).get("input");
    const named = { ids: [] as string[], repositories: [] as string[] };
    collectNames(this.#schema, facts.input, input, named);
    if (named.ids.length === 0 && named.repositories.length === 0) {
      throw new GraphqlRefusal(`Mutation.${name} names no repository and nothing of one`);
    }
    for (const id of named.ids) this.#id(id);
    this.#repositories.push(...named.repositories);
    for (const right of facts.needs) this.#written.add(right);
    if (facts.needsRightOf !== undefined) this.#subject(facts.needsRightOf, input);
    if (pathsOfCommit(name, input).some(isWorkflowPath)) this.#written.add("workflows");
    this.#adds.push(...contentOfMutation(name, input));
    this.#walk.walk(field.selectionSet, facts.payload);
  }

  #subject(field: string, input: unknown): void {
    const id = (input as Readonly<Record<string, unknown>>)[field];
    if (typeof id !== "string") throw new GraphqlRefusal(`${field} is missing`);
    this.#subjects.add(id);
  }

  #repository(owner: unknown, name: unknown): void {
    if (typeof owner !== "string" || typeof name !== "string") {
      throw new GraphqlRefusal("Query.repository must name owner and name as strings");
    }
    this.#repositories.push(`${owner}/${name}`);
  }

  /** `user(login:)` and its like: a profile, and one repository of it by name. */
  #account(selections: SelectionSetNode | undefined, login: unknown): void {
    for (const field of this.#walk.fieldsOf(selections)) {
      const name = field.name.value;
      if (name === "repository") {
        this.#repository(login, this.#arguments(field).get("name"));
        this.#walk.walk(field.selectionSet, "Repository");
      } else if (!isProfileField(name) || name === "organization") {
        throw new GraphqlRefusal(`the field ${name} of an account is not for limited tokens`);
      }
    }
  }

  #search(values: ReadonlyMap<string, unknown>): void {
    const query = values.get("query");
    const found = typeof query === "string" ? repositoriesOfSearch(query) : "its query is not a string";
    if (typeof found === "string" || typeof query !== "string") {
      throw new GraphqlRefusal(`Query.search searches beyond single repositories: ${String(found)}`);
    }
    this.#repositories.push(...found);
    const type = String(values.get("type"));
    if (type.startsWith("ISSUE")) for (const kind of issueKindsOfSearch(query)) this.#walk.read.add(kind);
    else if (type === "DISCUSSION") this.#walk.read.add("discussions");
    // The search covers the README, so a match reveals its content.
    else if (type === "REPOSITORY") this.#walk.read.add("contents");
    else throw new GraphqlRefusal("Query.search searches beyond single repositories");
  }

  #id(id: unknown): void {
    if (typeof id !== "string" || id === "" || id.length > 500)
      throw new GraphqlRefusal("an id is not a string");
    this.#ids.add(id);
    if (this.#ids.size > MAX_IDS) throw new GraphqlRefusal(`the request names more than ${MAX_IDS} ids`);
  }

  #arguments(field: FieldNode): ReadonlyMap<string, unknown> {
    const values = argumentValues(field.arguments, this.#variables);
    if (values === undefined) throw new GraphqlRefusal("an argument is given twice");
    return values;
  }

  /** Finds the repository of every id. An id outside of the token is refused as an unknown one is. */
  async #resolve(
    limits: TokenLimits,
    resolver: IdResolver,
    isMutation: boolean,
  ): Promise<ReadonlyMap<string, NodeFacts>> {
    if (this.#ids.size === 0) return new Map();
    const found = await resolver.nodes([...this.#ids]);
    for (const id of this.#ids) {
      const facts = found.get(id);
      const within = facts?.repository !== undefined && isListed(limits, facts.repository);
      const isPerson = facts !== undefined && this.#schema.types.get(facts.type)?.kind === "profile";
      if (facts === undefined || (!within && !(isPerson && !this.#subjects.has(id)))) {
        throw new GraphqlRefusal("an id belongs to no repository of the token", { conceals: true });
      }
      if (facts.repository !== undefined) this.#repositories.push(facts.repository);
      if (this.#subjects.has(id)) this.#written.add(this.#resourceOf(facts));
      if (!isMutation) this.#found(facts);
    }
    return found;
  }

  /** `node(id:) { __typename }` reveals the existence and type of a value. */
  #found({ type }: NodeFacts): void {
    const facts = this.#schema.types.get(type);
    if (facts?.resource !== undefined && !facts.inherits) this.#walk.read.add(facts.resource);
  }

  #resourceOf({ type, onPullRequest }: NodeFacts): Right {
    if (onPullRequest === true) return "pull_requests";
    const resource = this.#schema.types.get(type)?.resource;
    if (resource === undefined || resource === "metadata") {
      throw new GraphqlRefusal(`this cannot be done to a ${type} by a limited token`);
    }
    return resource;
  }
}
