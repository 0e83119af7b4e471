import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { Call } from "./calls.ts";
import type { Fault } from "./faults.ts";

/**
 * Sends an answer's body, counting its bytes into the call, with back-pressure. A fault cuts the connection or
 * falls silent after its number of bytes.
 */
export function sendBody(
  response: ServerResponse,
  body: Readable,
  call: Call,
  fault: Fault | undefined,
): void {
  const limit = Math.min(fault?.cutAfterBytes ?? Infinity, fault?.stallAfterBytes ?? Infinity);
  const cut = (): void => {
    if (fault?.cutAfterBytes === limit) response.socket?.destroy();
  };
  if (limit === 0) {
    body.destroy();
    response.flushHeaders();
    setImmediate(cut);
    return;
  }
  body.on("data", (chunk: Buffer) => {
    const piece = chunk.subarray(0, limit - call.bytesOut);
    call.bytesOut += piece.length;
    if (call.bytesOut === limit) {
      body.removeAllListeners();
      body.destroy();
      // The written bytes must reach the client first. Then the socket closes without an end.
      response.write(piece, cut);
    } else if (!response.write(piece)) {
      body.pause();
      response.once("drain", () => body.resume());
    }
  });
  body.once("end", () => {
    call.finished = !response.destroyed;
    response.end();
  });
  body.resume();
}
