import type { ArgumentNode, OperationDefinitionNode, ValueNode } from "graphql/language";

/** The values of an operation's variables: those given, else their defaults. */
export function variableValues(
  operation: OperationDefinitionNode,
  given: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>();
  for (const { variable, defaultValue } of operation.variableDefinitions ?? []) {
    const name = variable.name.value;
    if (Object.hasOwn(given, name)) values.set(name, given[name]);
    else if (defaultValue !== undefined) values.set(name, valueOf(defaultValue, new Map()));
  }
  return values;
}

/** Arguments by name; undefined: one is given twice. */
export function argumentValues(
  nodes: readonly ArgumentNode[] | undefined,
  variables: ReadonlyMap<string, unknown>,
): ReadonlyMap<string, unknown> | undefined {
  const values = new Map<string, unknown>();
  for (const { name, value } of nodes ?? []) {
    if (values.has(name.value)) return undefined;
    values.set(name.value, valueOf(value, variables));
  }
  return values;
}

/** A value as in JSON. An object that has a field twice becomes a symbol, which no check accepts. */
function valueOf(node: ValueNode, variables: ReadonlyMap<string, unknown>): unknown {
  switch (node.kind) {
    case "Variable":
      return variables.get(node.name.value);
    case "NullValue":
      return null;
    case "IntValue":
    case "FloatValue":
      return Number(node.value);
    case "ListValue":
      return node.values.map((each) => valueOf(each, variables));
    case "ObjectValue": {
      const names = new Set(node.fields.map(({ name }) => name.value).values());
      if (names.size !== node.fields.length) return Symbol("a field twice");
      return Object.fromEntries(
        node.fields.map(({ name, value }) => [name.value, valueOf(value, variables)]),
      );
    }
    default:
      return node.value;
  }
}
