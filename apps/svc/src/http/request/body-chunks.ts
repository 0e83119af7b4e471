import type { IncomingMessage } from "node:http";
import { IdleTimer } from "./idle-timer.ts";

/** Makes the error that ends the reading of a body: its code, the status of the answer, and its message for the client. */
export type BodyErrorOf = (code: "body_too_slow" | "client_gone", status: number, message: string) => Error;

/**
 * The chunks of a client's body as they come. The request outlives the iteration: its connection carries the answer.
 *
 * @param idleMs milliseconds without a byte after which the body is given up
 * @throws what `errorOf` makes, from the iteration
 */
export async function* bodyChunks(
  request: IncomingMessage,
  idleMs: number,
  errorOf: BodyErrorOf,
): AsyncGenerator<Buffer> {
  const chunks = (request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)[
    Symbol.asyncIterator
  ]();
  let giveUp: (error: Error) => void = () => undefined;
  const idle = new IdleTimer(idleMs, () =>
    giveUp(errorOf("body_too_slow", 408, "the request's body took too long")),
  );
  try {
    for (;;) {
      idle.resume();
      const step = await new Promise<IteratorResult<Buffer>>((resolve, reject) => {
        giveUp = reject;
        chunks.next().then(resolve, reject);
      });
      idle.pause();
      if (step.done === true) break;
      yield step.value;
    }
  } finally {
    idle.stop();
  }
  if (!request.complete) throw errorOf("client_gone", 499, "the client left");
}
