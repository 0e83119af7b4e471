import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Requests of one connection that may wait for an earlier answer. Browsers and git send one at a time. */
const MAX_WAITING = 32;

type Accept = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean) => void;

interface Line {
  last: ServerResponse;
  waiting: number;
}

/**
 * Handles the requests of a connection one after another (HTTP/1.1 pipelining, RFC 9112 section 9.3.2). Node would handle
 * them all at the same time and hold their answers back: a decision about access would then be as old as the client is slow.
 */
export function oneAfterAnother(accept: Accept): Accept {
  const lines = new WeakMap<Socket, Line>();
  return (request, response, expectsContinue) => {
    const { socket } = request;
    const line = lines.get(socket);
    if (line === undefined || line.last.closed) {
      lines.set(socket, { last: response, waiting: 0 });
      accept(request, response, expectsContinue);
      return;
    }
    if (line.waiting >= MAX_WAITING) {
      socket.destroy();
      return;
    }
    const before = line.last;
    line.last = response;
    line.waiting++;
    before.once("close", () => {
      line.waiting--;
      // Nobody is left to answer when the connection ended.
      if (!socket.destroyed) accept(request, response, expectsContinue);
    });
  };
}
