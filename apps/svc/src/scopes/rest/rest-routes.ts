import type { RestAccess, RestTable } from "./rest-table.ts";

/** A documented operation that a request was recognised as. */
export interface RestMatch {
  readonly method: string;
  readonly template: string;
  readonly access: RestAccess;
  /** By name, decoded. */
  readonly parameters: Readonly<Record<string, string>>;
}

interface Operation {
  readonly template: string;
  readonly access: RestAccess;
  readonly names: readonly string[];
}

interface Node {
  readonly literals: Map<string, Node>;
  parameter: Node | undefined;
  /** Takes the rest of the path, slashes included. */
  tail: Node | undefined;
  readonly operations: Map<string, Operation>;
}

/** Last parameters that hold slashes, which clients may send as they are: paths of files, names of refs. */
const TAILS =
  /\/(?:(?:contents|contents-ext|raw|media|editorconfig)\/\{path\}|readme\/\{dir\}|(?:git\/(?:refs?|matching-refs)|zipball|tarball)\/\{ref\}|compare\/\{basehead\})$/;

/** The code host's documented REST routes. */
export class RestRoutes {
  readonly #root: Node;

  constructor(table: RestTable) {
    this.#root = emptyNode();
    for (const [template, operations] of Object.entries(table)) {
      for (const [method, access] of Object.entries(operations)) this.#add(method, template, access);
    }
  }

  /**
   * The operation of a path. A literal segment is preferred to a parameter.
   *
   * @param method HEAD counts as GET
   * @param segments of the path below the API's base, decoded
   */
  find(method: string, segments: readonly string[]): RestMatch | undefined {
    const wanted = method === "HEAD" ? "GET" : method;
    const found = find(this.#root, wanted, segments, 0, []);
    if (found === undefined) return undefined;
    const { operation, values } = found;
    const parameters = Object.fromEntries(
      operation.names.map((name, index) => [name, values[index] ?? ""] as const),
    );
    return { method: wanted, template: operation.template, access: operation.access, parameters };
  }

  #add(method: string, template: string, access: RestAccess): void {
    let node = this.#root;
    const names: string[] = [];
    const segments = template === "/" ? [] : template.slice(1).split("/");
    for (const [index, segment] of segments.entries()) {
      if (!segment.startsWith("{")) {
        const next: Node = node.literals.get(segment) ?? emptyNode();
        node.literals.set(segment, next);
        node = next;
        continue;
      }
      names.push(segment.slice(1, -1));
      if (index === segments.length - 1 && TAILS.test(template)) node = node.tail ??= emptyNode();
      else node = node.parameter ??= emptyNode();
    }
    node.operations.set(method, { template, access, names });
  }
}

function find(
  node: Node,
  method: string,
  segments: readonly string[],
  index: number,
  values: readonly string[],
): { operation: Operation; values: readonly string[] } | undefined {
  const segment = segments[index];
  if (segment === undefined) {
    const operation = node.operations.get(method);
    return operation && { operation, values };
  }
  const literal = node.literals.get(segment);
  const exact = literal && find(literal, method, segments, index + 1, values);
  if (exact !== undefined) return exact;
  if (node.parameter !== undefined && segment !== "") {
    const deeper = find(node.parameter, method, segments, index + 1, [...values, segment]);
    if (deeper !== undefined) return deeper;
  }
  const operation = node.tail?.operations.get(method);
  return operation && { operation, values: [...values, segments.slice(index).join("/")] };
}

function emptyNode(): Node {
  return { literals: new Map(), parameter: undefined, tail: undefined, operations: new Map() };
}
