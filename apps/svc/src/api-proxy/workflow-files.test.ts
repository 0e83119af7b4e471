import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { WorkflowFiles } from "./workflow-files.ts";

const SAME = "a".repeat(40);
const EVIL = "e".repeat(40);
const OLD = "0123456789".repeat(4);
const PLAIN = "b".repeat(40);
const ODD = "c".repeat(40);

/** Trees by revision: the id of `.github`, or of a file of that name. */
const ROOTS: Readonly<Record<string, [type: string, sha: string] | undefined>> = {
  HEAD: ["tree", "g1"],
  [SAME]: ["tree", "g1"],
  [EVIL]: ["tree", "g2"],
  "refs/pull/5/head": ["tree", "g2"],
  [OLD]: ["tree", "g3"],
  "release-1": ["tree", "g3"],
  [ODD]: ["commit", "submodule"],
  [PLAIN]: undefined,
};
const INNER: Readonly<Record<string, string>> = { g1: "w1", g2: "w2", g3: "w3" };

describe("workflows in the content that a write adds", () => {
  let truncated = false;
  const look = new WorkflowFiles(async (path) => {
    const url = new URL(path, "http://api.example");
    const [, repository, rest = ""] = /^\/repos\/(acme\/widgets)\/(.*)$/.exec(url.pathname) ?? [];
    assert.equal(repository, "acme/widgets");
    const last = decodeURIComponent(rest.split("/").at(-1) ?? "");
    if (rest.startsWith("git/trees/")) {
      const inner = INNER[last];
      if (inner !== undefined) return { tree: [{ path: "workflows", type: "tree", sha: inner }], truncated };
      if (!(last in ROOTS)) return undefined;
      const entry = ROOTS[last];
      const readme = { path: "README.md", type: "blob", sha: "r" };
      return {
        tree: entry === undefined ? [readme] : [readme, { path: ".github", type: entry[0], sha: entry[1] }],
        truncated: false,
      };
    }
    if (rest.startsWith("commits/")) return rest.includes(OLD) ? [{ name: "release-1" }] : [];
    if (rest.startsWith("branches/")) return last === "release-1" ? { name: last } : undefined;
    if (rest === "pulls/1/files") return pages[Number(url.searchParams.get("page")) - 1];
    return undefined;
  });
  let pages: unknown[] = [];
  const changes = async (revision: string, onto?: string): Promise<boolean> =>
    look.changes({
      kind: "revision",
      repository: "acme/widgets",
      revision,
      ...(onto === undefined ? {} : { onto }),
    });

  const revisions: [name: string, revision: string, onto: string | undefined, changed: boolean][] = [
    ["the default branch's workflows", SAME, undefined, false],
    ["none at all", PLAIN, undefined, false],
    ["others", EVIL, undefined, true],
    ["others, by the name of a pull request's ref", "refs/pull/5/head", undefined, true],
    ["those of the branch that moves", OLD, "release-1", false],
    ["those of the branch that moves, by its ref", OLD, "heads/release-1", false],
    ["those at the end of another branch", OLD, undefined, false],
    ["a branch of the repository", "release-1", undefined, false],
    ["a commit that cannot be read", "f".repeat(40), undefined, true],
    ["something else in the folder's place", ODD, undefined, true],
    ["a deletion", "0".repeat(40), undefined, false],
    ["a path that climbs", "..", undefined, true],
  ];
  for (const [name, revision, onto, changed] of revisions) {
    it(`${name}: ${changed ? "changed" : "not changed"}`, async () => {
      assert.equal(await changes(revision, onto), changed);
    });
  }

  it("a tree that is not shown whole counts as changed", async () => {
    truncated = true;
    assert.equal(await changes(SAME), true);
    truncated = false;
  });

  it("a pull request is looked through to its last file, renames too", async () => {
    const pull = async (...given: unknown[]): Promise<boolean> => {
      pages = given;
      return look.changes({ kind: "pull_request", repository: "acme/widgets", number: "1" });
    };
    const plain = [{ filename: "README.md" }, { filename: ".github/CODEOWNERS" }];
    assert.equal(await pull(plain, []), false);
    assert.equal(await pull(plain, [{ filename: ".github/workflows/x.yml" }], []), true);
    assert.equal(await pull([{ filename: "x.yml", previous_filename: ".github/workflows/x.yml" }], []), true);
    assert.equal(await pull(plain, undefined), true);
    assert.equal(await pull(...Array.from({ length: 40 }, () => plain)), true);
    assert.equal(await look.changes({ kind: "pull_request", repository: "acme/widgets", number: "" }), true);
  });
});
