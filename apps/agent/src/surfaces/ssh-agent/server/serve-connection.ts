import type { Socket } from "node:net";
import type { Logger } from "@devplat/base";
import {
  AgentFrameReader,
  MAX_AGENT_MESSAGE_BYTES,
  SshProtocolError,
  encodeAgentAnswer,
  encodeAgentFrame,
  type AgentAnswer,
} from "@devplat/ssh-protocol";

/** A client that does not read its answer for so long is disconnected, in milliseconds. */
const SLOW_READER_MS = 30_000;

/** Answers the messages of one connection. */
export interface MessageHandler {
  /** @param message without its length @param signal fires when the client is gone */
  answer(message: Buffer, signal: AbortSignal): Promise<AgentAnswer>;
  close(): void;
}

/**
 * Reads messages from a connection and writes an answer for each. It holds one message that is answered, at most one more
 * with a chunk, and one answer. A client that sends more waits until its answers are read.
 */
export function serveConnection(socket: Socket, handler: MessageHandler, logger: Logger): void {
  const reader = new AgentFrameReader();
  const gone = new AbortController();
  let heldBytes = 0;
  let isBusy = false;
  const close = (): void => {
    gone.abort();
    socket.destroy();
  };
  const work = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    try {
      for (let message = reader.next(); message !== undefined; message = reader.next()) {
        heldBytes -= message.length;
        const answer = await handler.answer(message, gone.signal);
        if (gone.signal.aborted) return;
        if (!socket.write(encodeAgentFrame(encodeAgentAnswer(answer)))) await drained(socket, gone.signal);
        if (heldBytes <= MAX_AGENT_MESSAGE_BYTES) socket.resume();
      }
    } catch (error) {
      close();
      // After a message that is too long nothing more can be read.
      if (!(error instanceof SshProtocolError))
        logger.error({ err: error }, "connection to the SSH agent failed");
    } finally {
      isBusy = false;
    }
  };
  socket.on("data", (chunk: Buffer) => {
    reader.push(chunk);
    heldBytes += chunk.length;
    if (heldBytes > MAX_AGENT_MESSAGE_BYTES) socket.pause();
    void work();
  });
  socket.once("error", close);
  socket.once("end", close);
  socket.once("close", () => {
    gone.abort();
    handler.close();
  });
  socket.resume();
}

async function drained(socket: Socket, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const limit = setTimeout(() => socket.destroy(), SLOW_READER_MS);
  socket.once("drain", resolve);
  signal.addEventListener("abort", () => resolve(), { once: true });
  try {
    await promise;
  } finally {
    clearTimeout(limit);
    socket.off("drain", resolve);
  }
}
