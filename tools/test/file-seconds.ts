import { writeFileSync } from "node:fs";
import type { TestEvent } from "node:test/reporters";

/** Seconds that the tests of each file took, by path. */
export type FileSeconds = Readonly<Record<string, number>>;

/**
 * A reporter for node:test that keeps {@link FileSeconds} as JSON in the file named by TEST_SECONDS. It is written again after each
 * test that no suite contains: a group that is ended at its limit has shown where its time went.
 */
export default async function* fileSeconds(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const path = process.env["TEST_SECONDS"];
  const seconds: Record<string, number> = {};
  for await (const { type, data } of source) {
    if ((type !== "test:pass" && type !== "test:fail") || data.nesting > 0 || data.file === undefined)
      continue;
    seconds[data.file] = (seconds[data.file] ?? 0) + data.details.duration_ms / 1000;
    if (path !== undefined) writeFileSync(path, JSON.stringify(seconds));
  }
  yield "";
}
