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

/** A message must be complete this long after its first byte, in milliseconds. Clients send one without a pause. */
const MESSAGE_TIMEOUT_MS = 10_000;

/** Answers the messages of one connection. */
export interface MessageHandler {
  /** The connection comes from another host, or nobody knows where it comes from. */
  readonly isForwarded: boolean;
  /** @param message without its length @param signal fires when the client is gone */
  answer(message: Buffer, signal: AbortSignal): Promise<AgentAnswer>;
  close(): void;
}

/** State of a connection that is served. */
export interface ServedConnection {
  readonly isForwarded: boolean;
  /** An answer is not ready yet. A client that does not read an answer which is ready does not count. */
  readonly isAnswering: boolean;
}

/**
 * Reads messages from a connection and writes an answer for each. It holds one message that is answered, at most one more
 * with a chunk, and one answer. A client that sends more waits until its answers are read. A client that
 * does not complete a message in time is disconnected.
 *
 * @param onMessage called for each complete message
 */
export function serveConnection(
  socket: Socket,
  handler: MessageHandler,
  logger: Logger,
  onMessage: () => void = () => undefined,
): ServedConnection {
  const reader = new AgentFrameReader();
  const gone = new AbortController();
  let isBusy = false;
  let isAnswering = false;
  let limit: NodeJS.Timeout | undefined;
  const close = (): void => {
    gone.abort();
    socket.destroy();
  };
  const work = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    try {
      for (let message = reader.next(); message !== undefined; message = reader.next()) {
        clearTimeout(limit);
        limit = undefined;
        onMessage();
        isAnswering = true;
        const answer = await handler.answer(message, gone.signal);
        isAnswering = false;
        if (gone.signal.aborted) return;
        if (!socket.write(encodeAgentFrame(encodeAgentAnswer(answer)))) await drained(socket, gone.signal);
        if (reader.heldBytes <= MAX_AGENT_MESSAGE_BYTES) socket.resume();
      }
    } catch (error) {
      close();
      // After a message that is too long nothing more can be read.
      if (!(error instanceof SshProtocolError))
        logger.error({ err: error }, "connection to the SSH agent failed");
    } finally {
      isBusy = false;
    }
    if (reader.heldBytes > 0 && !gone.signal.aborted) limit ??= setTimeout(close, MESSAGE_TIMEOUT_MS);
  };
  socket.on("data", (chunk: Buffer) => {
    reader.push(chunk);
    if (reader.heldBytes > MAX_AGENT_MESSAGE_BYTES) socket.pause();
    void work();
  });
  socket.once("error", close);
  socket.once("end", close);
  socket.once("close", () => {
    clearTimeout(limit);
    gone.abort();
    handler.close();
  });
  socket.resume();
  return {
    get isForwarded() {
      return handler.isForwarded;
    },
    get isAnswering() {
      return isAnswering;
    },
  };
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
