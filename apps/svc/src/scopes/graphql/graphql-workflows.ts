import type { NodeFacts } from "../decision.ts";
import type { AddedContent } from "../workflow-writes.ts";

/** Content that a mutation adds, before its ids are resolved. */
export interface ContentOfMutation {
  /** Id of the repository or of a value in it. */
  readonly id: string;
  /** Undefined: the pull request that `id` is. */
  readonly revision?: string;
  readonly onto?: string;
}

type Fields = Readonly<Record<string, unknown>>;

const PULL_REQUEST: readonly string[] = [
  "mergePullRequest",
  "enablePullRequestAutoMerge",
  "enqueuePullRequest",
];
/** Input fields: of ids, the first that is there names the repository. */
const REVISION: ReadonlyMap<
  string,
  { readonly ids: readonly string[]; readonly revision: string; readonly onto?: string }
> = new Map([
  ["createRef", { ids: ["repositoryId"], revision: "oid" }],
  ["createLinkedBranch", { ids: ["repositoryId", "issueId"], revision: "oid" }],
  ["updateRef", { ids: ["refId"], revision: "oid" }],
  ["mergeBranch", { ids: ["repositoryId"], revision: "head", onto: "base" }],
]);

/** Paths that `createCommitOnBranch` writes or deletes. */
export function pathsOfCommit(mutation: string, input: unknown): string[] {
  if (mutation !== "createCommitOnBranch") return [];
  const changes = fieldsOf(fieldsOf(input)["fileChanges"]);
  return [...listOf(changes["additions"]), ...listOf(changes["deletions"])].map((file) =>
    // The code host takes only strings.
    String(fieldsOf(file)["path"]),
  );
}

/** Content that a mutation adds besides the files that it names. */
export function contentOfMutation(mutation: string, input: unknown): ContentOfMutation[] {
  const fields = fieldsOf(input);
  if (PULL_REQUEST.includes(mutation)) return [{ id: String(fields["pullRequestId"]) }];
  if (mutation === "updateRefs") {
    const id = String(fields["repositoryId"]);
    return listOf(fields["refUpdates"]).map((update) => ({
      id,
      revision: String(fieldsOf(update)["afterOid"]),
      onto: String(fieldsOf(update)["name"]),
    }));
  }
  const found = REVISION.get(mutation);
  if (found === undefined) return [];
  const id = found.ids.map((name) => fields[name]).find((each) => typeof each === "string");
  const onto = found.onto === undefined ? undefined : fields[found.onto];
  return [
    {
      id: String(id),
      revision: String(fields[found.revision]),
      ...(typeof onto === "string" ? { onto } : {}),
    },
  ];
}

/** The added content with resolved ids. An unknown id becomes content that cannot be compared. */
export function contentOf(
  { id, revision, onto }: ContentOfMutation,
  found: ReadonlyMap<string, NodeFacts>,
): AddedContent {
  const facts = found.get(id);
  const repository = facts?.repository ?? "";
  if (revision === undefined) return { kind: "pull_request", repository, number: facts?.number ?? "" };
  return { kind: "revision", repository, revision, ...(onto === undefined ? {} : { onto }) };
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** A single value is a list of one. */
function listOf(value: unknown): readonly unknown[] {
  return value === undefined || value === null ? [] : [value].flat();
}
