import { writeFileSync } from "node:fs";
import type { TestEvent } from "node:test/reporters";

/**
 * A reporter for node:test that keeps the names of the tests that have begun and not ended, one per line, in the file
 * named by TEST_RUNNING: the tests that a group was running when it was ended at its limit.
 */
export default async function* running(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const path = process.env["TEST_RUNNING"];
  const begun = new Set<string>();
  for await (const { type, data } of source) {
    if (type !== "test:dequeue" && type !== "test:complete") continue;
    const line = `${data.file ?? ""}:${data.line ?? 0} ${data.name}`;
    if (type === "test:dequeue") begun.add(line);
    else begun.delete(line);
    if (path !== undefined) writeFileSync(path, [...begun].join("\n"));
  }
  yield "";
}
