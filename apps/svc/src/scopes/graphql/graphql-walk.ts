import type { FieldNode, FragmentDefinitionNode, SelectionSetNode } from "graphql/language";
import { OPEN_EDGES, PROFILE_FIELDS, REFERENCE_FIELDS, ROOTED_ABSTRACT } from "./graphql-visible.ts";
import type { GraphqlTypes, TypeFacts } from "./graphql-types.ts";
import type { Right } from "../rights.ts";

/** Maximum fields of one request, with those of fragments for each use; `gh` has up to 300. */
const MAX_FIELDS = 20_000;
/** Selections within selections; the deepest query of `gh` has 12. */
const MAX_DEPTH = 40;

/**
 * Origin of the value of a selection.
 * - `same`: one of the checked repository. `other`: perhaps one of another repository, of which only names may be
 *   seen. `profile`: a person or team.
 */
type Origin = "same" | "other" | "profile";

/** Thrown where a query asks for values that limited tokens do not get. The message is for the caller. */
export class GraphqlRefusal extends Error {
  /** Whether the caller must not learn if the value exists. */
  readonly conceals: boolean;

  constructor(message: string, { conceals }: { readonly conceals: boolean } = { conceals: false }) {
    super(message);
    this.name = "GraphqlRefusal";
    this.conceals = conceals;
  }
}

/** Walks selections and collects the rights that they need. Directives are ignored: a skipped field needs less. */
export class GraphqlWalk {
  /** Rights of the values that are read. */
  readonly read = new Set<Right>();
  readonly #schema: GraphqlTypes;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #variables: ReadonlyMap<string, unknown>;
  readonly #inside = new Set<string>();
  #fields = 0;

  constructor(
    schema: GraphqlTypes,
    fragments: ReadonlyMap<string, FragmentDefinitionNode>,
    variables: ReadonlyMap<string, unknown>,
  ) {
    this.#schema = schema;
    this.#fragments = fragments;
    this.#variables = variables;
  }

  /** The fields of a selection, with those of its fragments. @throws GraphqlRefusal */
  *fieldsOf(selections: SelectionSetNode | undefined, depth = 0): Generator<FieldNode> {
    for (const selection of selections?.selections ?? []) {
      this.#count(depth);
      if (selection.kind === "Field") yield selection;
      else if (selection.kind === "InlineFragment") yield* this.fieldsOf(selection.selectionSet, depth + 1);
      else {
        const leave = this.#enter(selection.name.value);
        yield* this.fieldsOf(this.#fragment(selection.name.value).selectionSet, depth + 1);
        leave();
      }
    }
  }

  /**
   * Collects the rights of a selection on a value of the type.
   *
   * @param rooted whether nothing that needs a resource led to it: then that it is there at all is the resource's business
   * @throws GraphqlRefusal
   */
  walk(
    selections: SelectionSetNode | undefined,
    type: string,
    origin: Origin = "same",
    rooted = false,
    depth = 0,
  ): void {
    const facts = this.#schema.types.get(type);
    if (facts === undefined) throw new GraphqlRefusal(`the type ${type} is not for limited tokens`);
    if (rooted) this.#arrived(facts);
    for (const selection of selections?.selections ?? []) {
      this.#count(depth);
      if (selection.kind === "Field") {
        this.#field(selection, facts, origin, rooted, depth);
        continue;
      }
      const spread = selection.kind === "FragmentSpread" ? selection.name.value : undefined;
      const leave = spread === undefined ? undefined : this.#enter(spread);
      const { typeCondition, selectionSet } =
        selection.kind === "FragmentSpread" ? this.#fragment(selection.name.value) : selection;
      const condition = typeCondition?.name.value ?? type;
      this.walk(selectionSet, condition, this.#narrowed(facts, condition, origin), rooted, depth + 1);
      leave?.();
    }
  }

  #field(node: FieldNode, facts: TypeFacts, origin: Origin, rooted: boolean, depth: number): void {
    const name = node.name.value;
    if (name === "__typename") return;
    const field = facts.fields.get(name);
    if (field === undefined) throw new GraphqlRefusal(`${facts.name}.${name} is not for limited tokens`);
    if (facts.kind === "type" && !isReference(facts.name, name)) {
      if (origin === "other") {
        throw new GraphqlRefusal(`${facts.name}.${name} would be read of what may be another repository's`);
      }
      if (facts.resource !== undefined && !facts.inherits) this.read.add(facts.resource);
    }
    if (facts.kind === "wrapper" && field.mark === "leaf" && origin === "same") this.#figure(facts);
    if (field.mark === "leaf") return;
    if (facts.name === "Ref" && name === "compare") this.#withinRepository(node);
    const next: Origin = field.mark === "profile" ? "profile" : field.mark === "other" ? "other" : origin;
    const follows =
      facts.kind === "type" ? isUnguarded(facts) && !OPEN_EDGES.includes(`${facts.name}.${name}`) : rooted;
    this.walk(node.selectionSet, field.target, next, follows, depth + 1);
  }

  /** Rights needed to learn the existence, the number and the names of values that no guarded field led to. */
  #arrived(facts: TypeFacts): void {
    if (facts.kind === "type" && facts.resource !== undefined) this.read.add(facts.resource);
    for (const resource of ROOTED_ABSTRACT[facts.name] ?? []) this.read.add(resource);
    if (facts.kind === "wrapper") for (const inner of this.#contained(facts)) this.#arrived(inner);
  }

  /** A number of a connection (`totalCount`) reveals something of its values. */
  #figure(facts: TypeFacts): void {
    for (const { resource, inherits } of this.#contained(facts)) {
      if (resource !== undefined && !inherits) this.read.add(resource);
    }
  }

  /** Types of what a connection or an edge holds. */
  #contained(facts: TypeFacts): TypeFacts[] {
    return ["nodes", "node"].flatMap(
      (name) => this.#schema.types.get(facts.fields.get(name)?.target ?? "") ?? [],
    );
  }

  /** Where a fragment's type condition leads. */
  #narrowed(facts: TypeFacts, condition: string, origin: Origin): Origin {
    if (condition === facts.name) return origin;
    const narrowed = this.#schema.types.get(condition);
    if (narrowed === undefined) throw new GraphqlRefusal(`the type ${condition} is not for limited tokens`);
    if (origin === "profile") {
      if (narrowed.kind === "profile") return origin;
    } else if (narrowed.kind === "profile") {
      if (facts.kind === "abstract") return "profile";
    } else if (facts.kind === "abstract" || narrowed.kind === "abstract") return origin;
    throw new GraphqlRefusal(`a ${facts.name} is no ${condition}`);
  }

  /** `compare(headRef: "owner:branch")` reaches a fork. */
  #withinRepository(node: FieldNode): void {
    for (const { name, value } of node.arguments ?? []) {
      const text = value.kind === "Variable" ? this.#variables.get(value.name.value) : value;
      const plain = typeof text === "object" && text !== null && "value" in text ? text.value : text;
      if (name.value === "headRef" && (typeof plain !== "string" || plain.includes(":"))) {
        throw new GraphqlRefusal("Ref.compare reaches another repository");
      }
    }
  }

  #fragment(name: string): FragmentDefinitionNode {
    const found = this.#fragments.get(name);
    if (found === undefined) throw new GraphqlRefusal("a fragment is not defined");
    return found;
  }

  #enter(fragment: string): () => void {
    if (this.#inside.has(fragment)) throw new GraphqlRefusal("a fragment contains itself");
    this.#inside.add(fragment);
    return () => void this.#inside.delete(fragment);
  }

  #count(depth: number): void {
    if (++this.#fields > MAX_FIELDS) throw new GraphqlRefusal("the query selects too many fields");
    if (depth > MAX_DEPTH) throw new GraphqlRefusal("the query is nested too deeply");
  }
}

/** Whether the value is open to every token for its repository, so that nothing guards what it leads to. */
function isUnguarded({ resource, inherits }: TypeFacts): boolean {
  return resource === "metadata" && !inherits;
}

/** Whether a profile shows the field. */
export function isProfileField(name: string): boolean {
  return PROFILE_FIELDS.includes(name);
}

function isReference(type: string, field: string): boolean {
  return REFERENCE_FIELDS["*"]?.includes(field) === true || REFERENCE_FIELDS[type]?.includes(field) === true;
}
