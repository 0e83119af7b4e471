import assert from "node:assert/strict";
import { dirname } from "node:path";
import { describe, it } from "node:test";
import { readSources, readWorkspaces } from "./sources.ts";

/** Files of a folder and methods of a class that a reader can still keep in mind. */
const MAX_FILES = 20;
const MAX_METHODS = 20;

/** Folders with more files, each with its reason. */
const LARGE_FOLDERS: Readonly<Record<string, string>> = {
  "apps/svc/src/commands": "one file for each noun of the command line",
  "packages/ssh-protocol/src": "one file for each format of SSH",
};
/** Classes with more methods, each with its reason. */
const LARGE_CLASSES: Readonly<Record<string, string>> = {
  CoalescedFetch: "one method for each request of its leader, its readers and the response store",
  CommitColumns: "one method for each column, and for each way to find a commit",
  EntriesDocument: "one method for each edit of the contract, and for each place where an entry can be",
  EnrolmentRunner: "one method for each request of a surface",
  Evaluation: "one method for each kind of node of a template",
  Parser: "one method for each production of the grammar",
  TokenSignIn: "one method for each way to a token",
};

const product = readSources(readWorkspaces()).filter(
  ({ isTest, path }) => !isTest && /^(apps|packages)\//.test(path),
);

/** Name and number of methods of each class. oxfmt indents a member by two spaces. */
function classesOf(text: string): { name: string; methods: number }[] {
  return [...text.matchAll(/^(?:export )?(?:abstract )?class (\w+)[^{]*\{\n([\s\S]*?)^\}/gm)].map(
    ([, name = "", body = ""]) => ({
      name,
      methods: [
        ...body.matchAll(/^ {2}(?:(?:static|async|get|set|override) |\*)*[#\w[][\w.\]]*(?:<[^>]*>)?\(/gm),
      ].length,
    }),
  );
}

describe("sizes", () => {
  it("counts the methods of a class, of every form", () => {
    const text = [
      "export class A {",
      "  readonly #field = new Map();",
      "  constructor() {",
      "    call();",
      "  }",
      "  async run<T>(value: T): Promise<void> {}",
      "  get size(): number {}",
      "  static open() {}",
      "  #hidden() {}",
      "  [Symbol.dispose]() {}",
      "}",
    ].join("\n");
    assert.deepEqual(classesOf(text), [{ name: "A", methods: 6 }]);
  });

  it(`no folder has more than ${MAX_FILES} files, but those with a reason`, () => {
    const folders = Map.groupBy(product, ({ path }) => dirname(path));
    assert.ok(folders.size > 50);
    const large = [...folders].filter(([, files]) => files.length > MAX_FILES).map(([folder]) => folder);
    assert.deepEqual(
      large.filter((folder) => LARGE_FOLDERS[folder] === undefined),
      [],
    );
  });

  it(`no class has more than ${MAX_METHODS} methods, but those with a reason`, () => {
    const classes = product.flatMap(({ text }) => classesOf(text));
    assert.ok(classes.length > 100);
    const large = classes.filter(({ methods }) => methods > MAX_METHODS).map(({ name }) => name);
    assert.deepEqual(
      large.filter((name) => LARGE_CLASSES[name] === undefined),
      [],
    );
  });
});
