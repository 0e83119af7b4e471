import { spec, type TestEvent } from "node:test/reporters";
import { Readable } from "node:stream";
import { isSubtestFailure } from "./counter.ts";

/**
 * A reporter for node:test: what tests printed, each failure in a line as soon as it is known (a run that is ended
 * from outside keeps those), and at the end the failures as the `spec` reporter writes them. No line per passed test.
 */
export default async function* failures(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const failed: TestEvent[] = [];
  for await (const event of source) {
    if (event.type === "test:stdout" || event.type === "test:stderr") yield event.data.message;
    else if (event.type === "test:fail") {
      failed.push(event);
      const { name, file, line, details } = event.data;
      if (!isSubtestFailure(details.error)) {
        yield `FAILED ${file ?? ""}:${line ?? 0} ${name}: ${firstLine(details.error)}\n`;
      }
    }
  }
  if (failed.length === 0) return;
  for await (const text of Readable.from(failed).compose(new spec())) yield String(text);
}

/** node:test wraps what a test threw; its message is the cause's. What caused that in turn follows. */
function firstLine(error: Error): string {
  const [line = ""] = error.message.split("\n", 1);
  const cause = error.cause instanceof Error ? error.cause.cause : undefined;
  return cause instanceof Error ? `${line} (${cause.message.split("\n", 1)[0] ?? ""})` : line;
}
