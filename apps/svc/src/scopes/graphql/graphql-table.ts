import { z } from "zod";
import { RIGHTS } from "../rights.ts";

const name = z.string().min(1);
const right = z.enum(RIGHTS);

/** Fields of a type. `leaf`: scalars. The others lead to a value of the type whose name is behind theirs. */
const fields = z.strictObject({
  leaf: z.array(name).exactOptional(),
  same: z.record(name, name).exactOptional(),
  other: z.record(name, name).exactOptional(),
  profile: z.record(name, name).exactOptional(),
});

/** Fields of types as {@link TypeFacts} of graphql-types.ts has them. */
const type = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("type"),
    resource: right,
    inherits: z.literal(true).exactOptional(),
    fields,
  }),
  z.strictObject({ kind: z.enum(["abstract", "wrapper", "profile"]), fields }),
]);

/**
 * How a field of the schema's root is decided.
 * - `repository`: its arguments name a repository. `node`: they hold ids. `search`: they hold a query that names repositories.
 * - `account`: it leads to a profile, and to one repository of it by name. `profile`: to the caller's own.
 * - `open`: the response has nothing of any repository.
 */
export const queryKindSchema = z.enum(["repository", "node", "search", "profile", "account", "open"]);

const query = z.strictObject({ kind: queryKindSchema, target: name });

const mutation = z.strictObject({
  needs: z.array(right),
  needsRightOf: name.exactOptional(),
  payload: name,
  input: name,
});

const inputField = z.union([
  z.enum(["plain", "id", "repository", "branch"]),
  z.strictObject({ input: name }),
]);

/**
 * Form of `generated/graphql.json`: what limited tokens reach of the code host's published schema. A test checks the file
 * against it; the program does not.
 */
export const graphqlTableSchema = z.strictObject({
  types: z.record(name, type),
  queries: z.record(name, query),
  mutations: z.record(name, mutation),
  inputs: z.record(name, z.record(name, inputField)),
});

export type GraphqlTable = z.infer<typeof graphqlTableSchema>;

export type QueryKind = z.infer<typeof queryKindSchema>;

/**
 * Rights and types of a mutation.
 * - `needs`: all of these rights at level write. `needsRightOf`: the right of the value that this input field names.
 * - `payload`, `input`: types of its result and its argument.
 */
export type MutationFacts = z.infer<typeof mutation>;

/**
 * A field of an input type.
 * - `id`: names a value. `repository`: is `owner/name`. `branch`: must be of the same repository.
 * - `input`: has fields itself. `plain`: names nothing.
 */
export type InputField = z.infer<typeof inputField>;
