import { jsonMember, stringMember } from "@devplat/base/json-member";
import type { AddedContent, WorkflowComparison } from "../scopes/workflow-writes.ts";
import { WORKFLOW_FOLDERS, isWorkflowPath } from "../scopes/workflow-writes.ts";

/** Files of a pull request in one response, and maximum responses. The code host lists up to 3000 files. */
const FILES_PER_PAGE = 100;
const MAX_PAGES = 30;
/** An object's id: SHA-1 or SHA-256. */
const OBJECT_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i;
/** An id of nothing but zeros: a ref is deleted. */
const NO_OBJECT = /^0+$/;
/** Digest of a revision without workflows. */
const NONE = "";

/**
 * Looks for changed workflows in the content that a write adds, with the code host's API. As at the code host, files are
 * allowed that are the same in the default branch, in the branch that moves, or at the tip of another branch.
 */
export class WorkflowFiles implements WorkflowComparison {
  readonly #ask: (path: string) => Promise<unknown>;

  /** @param ask a path below the API's base, under the caller's credential; undefined: no JSON with status 200 */
  constructor(ask: (path: string) => Promise<unknown>) {
    this.#ask = ask;
  }

  async changes(added: AddedContent): Promise<boolean> {
    return added.kind === "pull_request"
      ? this.#pullRequestChanges(added.repository, added.number)
      : this.#revisionChanges(added);
  }

  async #pullRequestChanges(repository: string, number: string): Promise<boolean> {
    if (!/^\d{1,12}$/.test(number)) return true;
    for (let page = 1; page <= MAX_PAGES; page++) {
      const query = `per_page=${FILES_PER_PAGE}&limit=${FILES_PER_PAGE}&page=${page}`;
      const files = await this.#ask(`/repos/${repository}/pulls/${number}/files?${query}`);
      if (!Array.isArray(files)) return true;
      const paths = files.flatMap((file: unknown) => [
        stringMember(file, "filename"),
        stringMember(file, "previous_filename"),
      ]);
      if (paths.some((path) => path !== undefined && isWorkflowPath(path))) return true;
      if (files.length === 0) return false;
    }
    return true;
  }

  async #revisionChanges({
    repository,
    revision,
    onto,
  }: Extract<AddedContent, { kind: "revision" }>): Promise<boolean> {
    if (NO_OBJECT.test(revision)) return false;
    const found = await this.#workflowsAt(repository, revision);
    if (found === undefined) return true;
    if (found === NONE) return false;
    for (const known of [onto?.replace(/^(?:refs\/)?heads\//, ""), "HEAD"]) {
      if (known !== undefined && (await this.#workflowsAt(repository, known)) === found) return false;
    }
    return !(await this.#isBranch(repository, revision));
  }

  /** Digest of the workflows of a revision; undefined: unknown. */
  async #workflowsAt(repository: string, revision: string): Promise<string | undefined> {
    const root = await this.#tree(repository, revision);
    if (root === undefined) return undefined;
    const parts: string[] = [];
    for (const folder of WORKFLOW_FOLDERS) {
      const entry = root.get(folder);
      if (entry === undefined) continue;
      if (entry.type !== "tree") {
        parts.push(`${folder} ${entry.type} ${entry.sha}`);
        continue;
      }
      const inside = await this.#tree(repository, entry.sha);
      if (inside === undefined) return undefined;
      const workflows = inside.get("workflows");
      if (workflows !== undefined) parts.push(`${folder} ${workflows.type} ${workflows.sha}`);
    }
    return parts.length === 0 ? NONE : parts.join();
  }

  /** The entries of a tree, or of a revision's; undefined: it cannot be read, or not whole. */
  async #tree(
    repository: string,
    revision: string,
  ): Promise<ReadonlyMap<string, { readonly type: string; readonly sha: string }> | undefined> {
    const response = await this.#ask(`/repos/${repository}/git/trees/${encodeURIComponent(revision)}`);
    const tree = jsonMember(response, "tree");
    if (!Array.isArray(tree) || jsonMember(response, "truncated") === true) return undefined;
    return new Map(
      tree.flatMap((entry: unknown) => {
        const [path, type, sha] = [
          stringMember(entry, "path"),
          stringMember(entry, "type"),
          stringMember(entry, "sha"),
        ];
        return path === undefined || type === undefined || sha === undefined
          ? []
          : [[path, { type, sha }] as const];
      }),
    );
  }

  /** Whether it is a branch of the repository, or the id of one's last commit. */
  async #isBranch(repository: string, revision: string): Promise<boolean> {
    if (OBJECT_ID.test(revision)) {
      const branches = await this.#ask(`/repos/${repository}/commits/${revision}/branches-where-head`);
      return Array.isArray(branches) && branches.length > 0;
    }
    const name = revision.replace(/^refs\/heads\//, "");
    const branch = await this.#ask(`/repos/${repository}/branches/${encodeURIComponent(name)}`);
    return stringMember(branch, "name") === name;
  }
}
