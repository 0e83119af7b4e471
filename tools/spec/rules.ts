import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** A promise of a program, and the tests that hold it. */
export interface Rule {
  /** `svc 1.4` */
  readonly id: string;
  readonly text: string;
  /** `path: title` of each test, or of a group of tests, with its number in the title. */
  readonly tests: readonly string[];
}

export interface Coverage {
  readonly rules: readonly Rule[];
  /** Numbers in titles that no page knows, as `path: number`. */
  readonly unknown: readonly string[];
  /** Numbers that a page gives twice. */
  readonly double: readonly string[];
}

/** `- **1.4** text` of a page such as docs/rules/svc.md. */
const RULE = /^- \*\*(\d+\.\d+)\*\* (.+)$/gm;
/** The title of a test as it is written: from `it(`, `test(` or `describe(` to the end of the string. */
const TITLE = /\b(?:it|test|describe)\(\s*(?:"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g;
/** `[svc 1.4]`, or of several rules `[svc 1.4 2.1]`. */
const TAG = /\[(\w+) (\d+\.\d+(?: \d+\.\d+)*)\]/g;

/** Reads the pages of docs/rules and the titles of all tests below the root. */
export function readCoverage(root: string): Coverage {
  const tests = new Map<string, string[]>();
  const files = globSync("{apps,packages,tests,tools}/**/*.test.ts", {
    cwd: root,
    exclude: (name) => name === "node_modules",
  });
  for (const path of files.toSorted()) {
    for (const [, plain, template] of readFileSync(join(root, path), "utf8").matchAll(TITLE)) {
      const title = plain ?? template ?? "";
      for (const [, program = "", numbers = ""] of title.matchAll(TAG)) {
        for (const number of numbers.split(" ")) {
          const id = `${program} ${number}`;
          tests.set(id, [...(tests.get(id) ?? []), `${path}: ${title.replaceAll(TAG, "").trim()}`]);
        }
      }
    }
  }
  const rules = globSync("docs/rules/*.md", { cwd: root })
    .toSorted()
    .flatMap((page) =>
      [...readFileSync(join(root, page), "utf8").matchAll(RULE)].map(([, number = "", text = ""]) => {
        const id = `${basename(page, ".md")} ${number}`;
        return { id, text, tests: tests.get(id) ?? [] };
      }),
    );
  const ids = rules.map(({ id }) => id);
  const known = new Set(ids);
  return {
    rules,
    unknown: [...tests]
      .filter(([id]) => !known.has(id))
      .flatMap(([id, paths]) => paths.map((path) => `${path}: ${id}`)),
    double: ids.filter((id, at) => ids.indexOf(id) !== at),
  };
}
