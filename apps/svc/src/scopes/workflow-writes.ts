import { bodyFields } from "./body-fields.ts";

/**
 * What a write of contents brings into a repository besides files that it names itself. A workflow is code that runs with
 * the repository's secrets: who may write contents may not write workflows, and the code hosts look for them where a branch or
 * tag moves (a push, a ref, a merge), not where objects are made.
 * - `pull_request`: what it changes.
 * - `revision`: a commit, by its id or any name. `onto`: the revision whose workflows are there already.
 */
export type Brought =
  | { readonly kind: "pull_request"; readonly repository: string; readonly number: string }
  | {
      readonly kind: "revision";
      readonly repository: string;
      readonly revision: string;
      readonly onto?: string;
    };

/** Answers whether what is brought differs in its workflows from what the repository has; true where it cannot be told. */
export interface WorkflowLook {
  changes(brought: Brought): Promise<boolean>;
}

/** Folders that hold workflows; GitHub reads the first only, Gitea and Forgejo all. */
export const WORKFLOW_FOLDERS = [".github", ".gitea", ".forgejo"] as const;

/** Whether a path is of a workflow, or of a folder of them; also one that servers might straighten into such. */
export function isWorkflowPath(path: string): boolean {
  const parts = path.split(/[/\\]+/).filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) return true;
  const [folder = "", inner] = parts.map((part) => part.toLowerCase());
  const known = WORKFLOW_FOLDERS.some((each) => each === folder);
  // The folder itself, as one entry, may hold them.
  return known && (inner === undefined || inner === "workflows");
}

/** Names what is brought. */
interface BringingField {
  /** The field of the JSON body, in lower case. */
  readonly revision: string;
  /** The field that names what it is brought onto. */
  readonly onto?: string;
  /** Whether it is brought onto the ref in the path. */
  readonly ontoRef?: true;
}

const IN_BODY: ReadonlyMap<string, readonly BringingField[]> = new Map([
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

/** Whether the body of such a request says what it brings. */
export function bringsByBody(rule: string): boolean {
  return IN_BODY.has(rule);
}

/** What a request brings whose path says so. */
export function broughtByPath(
  rule: string,
  repository: string,
  parameters: Readonly<Record<string, string>>,
): Brought[] {
  const name = PULL_REQUEST.get(rule);
  return name === undefined ? [] : [{ kind: "pull_request", repository, number: parameters[name] ?? "" }];
}

/**
 * What a request brings by its body. @returns a sentence that says what is wrong with the body
 *
 * @param ref of the path, where it has one
 */
export function broughtByBody(
  rule: string,
  repository: string,
  ref: string,
  body: unknown,
): Brought[] | string {
  const named = IN_BODY.get(rule) ?? [];
  const judged = named.map(({ revision }) => revision);
  const fields = bodyFields(body, judged);
  if (typeof fields === "string") return fields;
  const brought: Brought[] = [];
  for (const { revision: field, onto: ontoField, ontoRef } of named) {
    const revision = fields[field];
    if (revision === undefined || revision === null || revision === "") continue;
    if (typeof revision !== "string") return `The field ${field} must be a text`;
    const onto = ontoRef === true ? ref : ontoField === undefined ? undefined : fields[ontoField];
    brought.push({
      kind: "revision",
      repository,
      revision,
      ...(typeof onto === "string" && onto !== "" ? { onto } : {}),
    });
  }
  return brought;
}
