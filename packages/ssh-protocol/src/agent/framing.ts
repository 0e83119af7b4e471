import { SshProtocolError } from "../errors.ts";

/** Longest message without its length field, as in OpenSSH. */
export const MAX_AGENT_MESSAGE_BYTES = 256 * 1024;
const LENGTH_BYTES = 4;

/** Puts the length before a message (draft-ietf-sshm-ssh-agent section 4). */
export function encodeAgentFrame(message: Uint8Array): Buffer {
  const length = Buffer.allocUnsafe(LENGTH_BYTES);
  length.writeUInt32BE(message.length);
  return Buffer.concat([length, message]);
}

/**
 * Cuts a stream into messages. Call `next` after each `push` until it returns undefined: then never more than one
 * message and one chunk are held.
 */
export class AgentFrameReader {
  #parts: Buffer[] = [];
  #held = 0;

  /** Bytes of messages that {@link next} has not returned yet. */
  get heldBytes(): number {
    return this.#held;
  }

  push(chunk: Buffer): void {
    this.#parts.push(chunk);
    this.#held += chunk.length;
  }

  /**
   * The next whole message, or undefined. After an error the stream has no more messages: close the connection.
   *
   * @throws SshProtocolError `too_long`, or `bad_value` for an empty message
   */
  next(): Buffer | undefined {
    if (this.#held < LENGTH_BYTES) return undefined;
    if (this.#parts[0]!.length < LENGTH_BYTES) this.#join();
    const length = this.#parts[0]!.readUInt32BE();
    if (length === 0) throw new SshProtocolError("bad_value", "an agent message is empty");
    if (length > MAX_AGENT_MESSAGE_BYTES) {
      throw new SshProtocolError(
        "too_long",
        `an agent message has more than ${MAX_AGENT_MESSAGE_BYTES} bytes`,
      );
    }
    const end = LENGTH_BYTES + length;
    if (this.#held < end) return undefined;
    // Joined once for each message: many small chunks must not be copied again and again.
    const whole = this.#join();
    this.#parts = whole.length === end ? [] : [whole.subarray(end)];
    this.#held -= end;
    return whole.subarray(LENGTH_BYTES, end);
  }

  #join(): Buffer {
    const whole = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts);
    this.#parts = [whole];
    return whole;
  }
}
