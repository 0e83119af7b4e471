import { z } from "zod";
import { RIGHTS } from "../rights.ts";
import { queryKindSchema } from "./graphql-table.ts";
import checks from "./rules/checks.json" with { type: "json" };
import contents from "./rules/contents.json" with { type: "json" };
import discussions from "./rules/discussions.json" with { type: "json" };
import issues from "./rules/issues.json" with { type: "json" };
import pullRequests from "./rules/pull-requests.json" with { type: "json" };
import repository from "./rules/repository.json" with { type: "json" };
import schema from "./rules/schema.json" with { type: "json" };
import vulnerabilityAlerts from "./rules/vulnerability-alerts.json" with { type: "json" };

// The parts of the code host's GraphQL schema that limited tokens reach, kept by hand in the files below rules/. `tools/scopes`
// applies them to the published schema, and the result is generated/graphql.json. Everything that they do not name is refused.

const name = z.string().min(1);
const right = z.enum(RIGHTS);
/**
 * Fields that lead to another value of the same repository. A field that leads to a type with a rule and is not named here may
 * lead to another repository: only `REFERENCE_FIELDS` can be selected behind it.
 */
const sameRepository = z.array(name).exactOptional();

/**
 * A type whose values belong to one repository. `needs`: the right that its scalar fields need at level read. `needsAtRoot`: the
 * same, but only where no other value led to it, as in `node(id:)` and in results of mutations.
 */
const typeRule = z.union([
  z.strictObject({ needs: right, sameRepository }),
  z.strictObject({ needsAtRoot: right, sameRepository }),
]);

/**
 * A mutation. `needs`: rights at level write. `needsRightOf`: the right of the value that this input field names. Every id and
 * repository in its input must belong to an allowed repository, or to a person or team.
 */
const mutationRule = z.union([
  z.strictObject({ needs: z.array(right).nonempty() }),
  z.strictObject({ needsRightOf: name }),
]);

const subjectSchema = z.strictObject({
  types: z.record(name, typeRule),
  /** Fields of these types that no limited token may select. */
  withheld: z.array(z.strictObject({ reason: name, fields: z.array(name) })).exactOptional(),
  mutations: z.record(name, mutationRule),
});

const { profileTypes, abstractTypes, queries } = z
  .strictObject({
    /** People, teams and organizations: only their public profile, and an organization's name behind a team. */
    profileTypes: z.array(name),
    /** Unions and interfaces of types with a rule; they need nothing themselves. */
    abstractTypes: z.array(name),
    /** Fields of the schema's root. */
    queries: z.record(name, queryKindSchema),
  })
  .parse(schema);

const subjects = [repository, contents, issues, pullRequests, checks, discussions, vulnerabilityAlerts].map(
  (subject) => subjectSchema.parse(subject),
);

export const GRAPHQL_RULES = {
  types: joined(subjects.map(({ types }) => types)),
  withheld: subjects.flatMap(({ withheld = [] }) => withheld.flatMap(({ fields }) => fields)),
  mutations: joined(subjects.map(({ mutations }) => mutations)),
  profileTypes,
  abstractTypes,
  queries,
};

/** @throws TypeError where two subjects have a rule for the same name */
function joined<T>(records: readonly Readonly<Record<string, T>>[]): Readonly<Record<string, T>> {
  const entries = records.flatMap((each) => Object.entries(each));
  const all = Object.fromEntries(entries);
  if (Object.keys(all).length === entries.length) return all;
  const repeated = entries.find(([key], at) => entries.findIndex(([other]) => other === key) < at)?.[0] ?? "";
  throw new TypeError(`two rules are for ${repeated}`);
}
