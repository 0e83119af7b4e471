import { spec, type TestEvent } from "node:test/reporters";
import { Readable } from "node:stream";

/**
 * A reporter for node:test: the failures of the `spec` reporter and what tests printed, without a line per passed
 * test.
 */
export default async function* failures(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const failed: TestEvent[] = [];
  for await (const event of source) {
    if (event.type === "test:stdout" || event.type === "test:stderr") yield event.data.message;
    else if (event.type === "test:fail") failed.push(event);
  }
  if (failed.length === 0) return;
  for await (const text of Readable.from(failed).compose(new spec())) yield String(text);
}
