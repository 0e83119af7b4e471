import {
  buildSchema,
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  type GraphQLSchema,
} from "graphql";

export interface SchemaField {
  readonly name: string;
  /** Named type, without list and non-null. */
  readonly target: string;
  readonly isLeaf: boolean;
  /** Named type of the argument `input`. */
  readonly input: string | undefined;
}

export interface InputField {
  readonly name: string;
  readonly type: string;
  readonly isInputObject: boolean;
}

/** Questions to a GraphQL schema. Each throws TypeError for a name that it does not have. */
export class GraphqlSchema {
  readonly #schema: GraphQLSchema;

  constructor(source: string) {
    this.#schema = buildSchema(source, { assumeValid: true });
  }

  has(type: string): boolean {
    return this.#schema.getType(type) !== undefined;
  }

  /** Objects and interfaces, those of introspection apart. */
  typesWithFields(): string[] {
    return Object.values(this.#schema.getTypeMap())
      .filter((type) => (isObjectType(type) || isInterfaceType(type)) && !type.name.startsWith("__"))
      .map(({ name }) => name);
  }

  /** Fields of an object or interface. A union has none. */
  fields(type: string): SchemaField[] {
    const found = this.#schema.getType(type);
    if (found === undefined) throw new TypeError(`the schema has no type ${type}`);
    if (!isObjectType(found) && !isInterfaceType(found)) return [];
    return Object.values(found.getFields()).map((field) => {
      const target = getNamedType(field.type);
      const input = field.args.find(({ name }) => name === "input");
      return {
        name: field.name,
        target: target.name,
        isLeaf: isLeafType(target),
        input: input && getNamedType(input.type).name,
      };
    });
  }

  field(type: string, name: string): SchemaField {
    const found = this.fields(type).find((field) => field.name === name);
    if (found === undefined) throw new TypeError(`${type} has no field ${name}`);
    return found;
  }

  inputFields(type: string): InputField[] {
    const found = this.#schema.getType(type);
    if (!isInputObjectType(found)) throw new TypeError(`the schema has no input type ${type}`);
    return Object.values(found.getFields()).map((field) => {
      const named = getNamedType(field.type);
      return { name: field.name, type: named.name, isInputObject: isInputObjectType(named) };
    });
  }
}
