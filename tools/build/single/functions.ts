import {
  parse,
  type AnonymousFunctionDeclaration,
  type AnyNode,
  type ArrowFunctionExpression,
  type ClassDeclaration,
  type ClassExpression,
  type FunctionDeclaration,
  type FunctionExpression,
} from "acorn";

type AnyFunction =
  | FunctionDeclaration
  | FunctionExpression
  | AnonymousFunctionDeclaration
  | ArrowFunctionExpression;
type AnyClass = ClassDeclaration | ClassExpression;

/** V8 makes a function of the fields of a class: it sets them in a new object. */
const FIELDS = "{fields}";

/**
 * Finds the functions of a script. Each has a path of names that stays the same when other code changes: those of the functions and
 * classes around it and its own, such as `Store/open/()`. A path that more functions have is numbered from the second on: `Store/open/()~2`.
 *
 * @returns the offset behind the last character of each
 * @throws SyntaxError
 */
export function functionsOf(text: string): Map<string, number> {
  const found = new Map<string, number>();
  const uses = new Map<string, number>();
  const visit = (node: AnyNode, path: string, name: string | undefined): void => {
    let inside = path;
    if (isFunction(node) || isClass(node)) {
      const own = `${path}${path === "" ? "" : "/"}${node.id?.name ?? name ?? "()"}`;
      const use = (uses.get(own) ?? 0) + 1;
      uses.set(own, use);
      inside = use === 1 ? own : `${own}~${use}`;
      const end = isFunction(node) ? node.end : endOfFields(node);
      if (end !== undefined) found.set(isFunction(node) ? inside : `${inside}/${FIELDS}`, end);
    }
    const nameInside = isClass(node) || isFunction(node) ? undefined : (nameGivenBy(node) ?? name);
    for (const child of childrenOf(node)) visit(child, inside, nameInside);
  };
  visit(parse(text, { ecmaVersion: "latest", sourceType: "script" }), "", undefined);
  return found;
}

function isFunction(node: AnyNode): node is AnyFunction {
  return /^(?:Arrow)?Function/.test(node.type);
}

function isClass(node: AnyNode): node is AnyClass {
  return node.type === "ClassDeclaration" || node.type === "ClassExpression";
}

function endOfFields({ body: { body } }: AnyClass): number | undefined {
  const last = body.findLast((member) => member.type === "PropertyDefinition" && !member.static);
  return last?.type === "PropertyDefinition" ? (last.value ?? last.key).end : undefined;
}

/** The name that a function inside gets from the place where it is. */
function nameGivenBy(node: AnyNode): string | undefined {
  if (node.type === "VariableDeclarator") return nameOf(node.id);
  if (node.type === "AssignmentExpression") return nameOf(node.left);
  if (node.type === "MethodDefinition" || node.type === "PropertyDefinition" || node.type === "Property") {
    const kind = node.type !== "PropertyDefinition" && /^[gs]et$/.test(node.kind) ? `${node.kind} ` : "";
    return `${kind}${nameOf(node.key) ?? "[]"}`;
  }
  return undefined;
}

function nameOf(node: AnyNode): string | undefined {
  if (node.type === "Identifier") return node.name;
  if (node.type === "PrivateIdentifier") return `#${node.name}`;
  if (node.type === "Literal") return String(node.value);
  if (node.type === "MemberExpression") return nameOf(node.property);
  return undefined;
}

function childrenOf(node: AnyNode): AnyNode[] {
  return Object.values(node)
    .flat()
    .filter((value): value is AnyNode => typeof (value as Partial<AnyNode> | null)?.type === "string");
}
