import { bodyFields } from "./body-fields.ts";

/**
 * Content that a write adds to a repository besides the files that it names itself. A workflow is code that runs with the
 * repository's secrets, so the right to write contents does not include workflows. Code hosts check for them where a branch or
 * tag moves (a push, a ref, a merge), not where objects are made.
 * - `pull_request`: the changes of a pull request.
 * - `revision`: a commit, by its id or any name. `onto`: the revision whose workflows are in the repository already.
 */
export type AddedContent =
  | { readonly kind: "pull_request"; readonly repository: string; readonly number: string }
  | {
      readonly kind: "revision";
      readonly repository: string;
      readonly revision: string;
      readonly onto?: string;
    };

/** Compares the workflows of added content with those of the repository. Unknown counts as changed. */
export interface WorkflowComparison {
  changes(added: AddedContent): Promise<boolean>;
}

/** Folders that hold workflows; GitHub reads the first only, Gitea and Forgejo all. */
export const WORKFLOW_FOLDERS = [".github", ".gitea", ".forgejo"] as const;

/** Whether a path is of a workflow or of a folder of them, also after a server has normalised it. */
export function isWorkflowPath(path: string): boolean {
  const parts = path.split(/[/\\]+/).filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) return true;
  const [folder = "", inner] = parts.map((part) => part.toLowerCase());
  const known = WORKFLOW_FOLDERS.some((each) => each === folder);
  // The folder itself, as one entry, may hold them.
  return known && (inner === undefined || inner === "workflows");
}

/** A field that names the added content. */
interface ContentField {
  /** The field of the JSON body, in lower case. */
  readonly revision: string;
  /** The field that names the revision that it is added to. */
  readonly onto?: string;
  /** Whether it is added to the ref in the path. */
  readonly ontoRef?: true;
}

const IN_BODY: ReadonlyMap<string, readonly ContentField[]> = new Map([
  ["POST /repos/{owner}/{repo}/git/refs", [{ revision: "sha" }]],
  ["PATCH /repos/{owner}/{repo}/git/refs/{ref}", [{ revision: "sha", ontoRef: true }]],
  ["POST /repos/{owner}/{repo}/merges", [{ revision: "head", onto: "base" }]],
  ["POST /repos/{owner}/{repo}/releases", [{ revision: "target_commitish" }]],
  ["PATCH /repos/{owner}/{repo}/releases/{release_id}", [{ revision: "target_commitish" }]],
  // Gitea's
  ["PATCH /repos/{owner}/{repo}/releases/{id}", [{ revision: "target_commitish" }]],
  ["POST /repos/{owner}/{repo}/branches", [{ revision: "old_ref_name" }, { revision: "old_branch_name" }]],
  ["POST /repos/{owner}/{repo}/tags", [{ revision: "target" }]],
]);
/** Path parameters that hold the number of a pull request. */
const PULL_REQUEST = new Map([
  ["PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge", "pull_number"],
  ["PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge-async", "pull_number"],
  ["POST /repos/{owner}/{repo}/pulls/{index}/merge", "index"],
]);

/** Whether the body of such a request names the content that it adds. */
export function hasContentInBody(rule: string): boolean {
  return IN_BODY.has(rule);
}

/** Content that a request adds by its path. */
export function contentByPath(
  rule: string,
  repository: string,
  parameters: Readonly<Record<string, string>>,
): AddedContent[] {
  const name = PULL_REQUEST.get(rule);
  return name === undefined ? [] : [{ kind: "pull_request", repository, number: parameters[name] ?? "" }];
}

/**
 * Content that a request adds by its body. @returns a sentence about the fault of the body
 *
 * @param ref of the path, where it has one
 */
export function contentByBody(
  rule: string,
  repository: string,
  ref: string,
  body: unknown,
): AddedContent[] | string {
  const named = IN_BODY.get(rule) ?? [];
  const checked = named.map(({ revision }) => revision);
  const fields = bodyFields(body, checked);
  if (typeof fields === "string") return fields;
  const added: AddedContent[] = [];
  for (const { revision: field, onto: ontoField, ontoRef } of named) {
    const revision = fields[field];
    if (revision === undefined || revision === null || revision === "") continue;
    if (typeof revision !== "string") return `The field ${field} must be a string`;
    const onto = ontoRef === true ? ref : ontoField === undefined ? undefined : fields[ontoField];
    added.push({
      kind: "revision",
      repository,
      revision,
      ...(typeof onto === "string" && onto !== "" ? { onto } : {}),
    });
  }
  return added;
}
