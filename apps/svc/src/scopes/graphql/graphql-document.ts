import { BoundedMap } from "@devplat/base/bounded-map";
import {
  parse,
  type DocumentNode,
  type FragmentDefinitionNode,
  type OperationDefinitionNode,
} from "graphql/language";
import type { GraphqlRequest } from "./graphql-request.ts";

/** Maximum tokens of a document. The largest query of `gh` has under 1000. */
const MAX_TOKENS = 15_000;
/** Parsed documents that are kept: programs send the same few again and again. */
const MAX_KEPT = 200;
/** Characters of a document that is kept; longer ones are rare. */
const MAX_KEPT_LENGTH = 32 * 1024;

/** The operation that a request selects, with the fragments of its document. */
export interface SelectedOperation {
  readonly operation: OperationDefinitionNode;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
}

interface ParsedDocument {
  readonly operations: readonly OperationDefinitionNode[];
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
}

/** Parses documents and remembers them. */
export class GraphqlDocuments {
  readonly #kept = new BoundedMap<string, ParsedDocument>({ max: MAX_KEPT });

  /** @returns what is wrong, as text; never the parser's message, which quotes its input */
  select({ query, operationName }: GraphqlRequest): SelectedOperation | string {
    const parsed = this.#parse(query);
    if (parsed === undefined) return "the query is not valid GraphQL, or too long";
    const { operations, fragments } = parsed;
    if (operationName === undefined && operations.length > 1) {
      return "the document has several operations, and operationName names none";
    }
    const operation =
      operationName === undefined
        ? operations[0]
        : operations.find(({ name }) => name?.value === operationName);
    if (operation === undefined) return "the document has no such operation";
    return { operation, fragments };
  }

  #parse(query: string): ParsedDocument | undefined {
    const kept = this.#kept.get(query);
    if (kept !== undefined) return kept;
    let document: DocumentNode;
    try {
      document = parse(query, { maxTokens: MAX_TOKENS, noLocation: true });
    } catch {
      return undefined;
    }
    const operations: OperationDefinitionNode[] = [];
    const fragments = new Map<string, FragmentDefinitionNode>();
    const names = new Set<string>();
    for (const definition of document.definitions) {
      // A request must not define types. Of two definitions with one name, each server might use another.
      if (definition.kind !== "OperationDefinition" && definition.kind !== "FragmentDefinition")
        return undefined;
      const name = `${definition.kind} ${definition.name?.value ?? ""}`;
      if (names.has(name)) return undefined;
      names.add(name);
      if (declaresTwice(definition)) return undefined;
      if (definition.kind === "OperationDefinition") operations.push(definition);
      else fragments.set(definition.name.value, definition);
    }
    const parsed = { operations, fragments };
    if (query.length <= MAX_KEPT_LENGTH) this.#kept.set(query, parsed);
    return parsed;
  }
}

/** Whether a variable is declared twice: of its two defaults, each server might use another. */
function declaresTwice({
  variableDefinitions = [],
}: OperationDefinitionNode | FragmentDefinitionNode): boolean {
  return (
    new Set(variableDefinitions.map(({ variable }) => variable.name.value)).size !==
    variableDefinitions.length
  );
}
