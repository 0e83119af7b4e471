import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { TestEvent } from "node:test/reporters";

/** Result of a group of tests. Only tests count, not the suites around them. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  /** Skipped and todo: the project has none, so one counts as a mistake. */
  readonly skipped: number;
  /** The files in which something failed. */
  readonly failedFiles: readonly string[];
}

/**
 * A reporter for node:test that writes a {@link Tally} as JSON to the file named by TEST_TALLY: exact numbers,
 * with any output of the tests themselves.
 */
export default async function* counter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const tally = { passed: 0, failed: 0, skipped: 0 };
  const failedFiles = new Set<string>();
  for await (const event of source) {
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    const { data } = event;
    if (event.type === "test:pass" && (data.details.type === "suite" || isFile(data))) continue;
    if (data.skip !== undefined || data.todo !== undefined) tally.skipped++;
    else if (event.type === "test:pass") tally.passed++;
    // A suite that fails only because of a test in it is not counted. A suite whose own hook failed counts itself.
    else if (!("error" in data.details) || !isSubtestFailure(data.details.error)) {
      tally.failed++;
      if (data.file !== undefined) failedFiles.add(data.file);
    }
  }
  const path = process.env["TEST_TALLY"];
  if (path !== undefined) writeFileSync(path, JSON.stringify({ ...tally, failedFiles: [...failedFiles] }));
  yield "";
}

/** node:test reports a file in which it found no test as a test of its own, named after the file. */
function isFile(data: { name: string; file?: string; nesting: number }): boolean {
  return data.nesting === 0 && data.file !== undefined && resolve(data.name) === data.file;
}

/** Whether a test failed only because one below it did. */
export function isSubtestFailure(error: unknown): boolean {
  return error instanceof Error && "failureType" in error && error.failureType === "subtestsFailed";
}
