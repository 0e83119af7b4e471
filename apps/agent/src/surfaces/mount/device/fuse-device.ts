import { closeSync, write, writevSync } from "node:fs";
import { constants } from "node:os";
import { promisify } from "node:util";
import { systemCode } from "@devplat/base";
import { REPLY_HEADER_BYTES, requestBufferBytes } from "@devplat/fuse-protocol";
import { AgentError } from "../../../errors.ts";
import { lastErrno } from "@devplat/base/libc";
import { setNonBlocking } from "./non-blocking.ts";
import { lastErrorName, systemCalls } from "./system-calls.ts";

const { EINTR, EAGAIN, ENOENT, ENODEV, ECONNABORTED } = constants.errno;
/** Replies up to this many bytes of data are copied, which takes less time than a write of two buffers. */
const MAX_COPIED_BYTES = 64 * 1024;

const writeInPool = promisify(write);

/**
 * The descriptor of a mounted `/dev/fuse`, for a thread that waits with `Poller`. It belongs to this object.
 * The mount ends when all its descriptors are closed, but stays in the mount table.
 */
export class FuseDevice implements Disposable {
  readonly descriptor: number;
  readonly #requests: Buffer;
  readonly #copied = Buffer.alloc(REPLY_HEADER_BYTES + MAX_COPIED_BYTES);

  /** @param maxWriteBytes as in `ConnectionOptions` */
  constructor(descriptor: number, maxWriteBytes: number) {
    this.descriptor = descriptor;
    this.#requests = Buffer.alloc(requestBufferBytes(maxWriteBytes));
    // A request can be withdrawn between the wait and the read, which then must not wait.
    setNonBlocking(descriptor);
  }

  /**
   * Reads the next request. The bytes are valid until the next read.
   *
   * @returns undefined when there is none
   * @throws AgentError `mount_failed`
   */
  read(): Buffer | "unmounted" | undefined {
    for (;;) {
      const length = systemCalls().read(this.descriptor, this.#requests, BigInt(this.#requests.length));
      if (length >= 0) return this.#requests.subarray(0, length);
      const error = lastErrno();
      if (error === EAGAIN) return undefined;
      if (error === ENODEV || error === ECONNABORTED) return "unmounted";
      // The kernel withdrew the request while it was read.
      if (error !== EINTR && error !== ENOENT)
        throw new AgentError("mount_failed", `cannot read from the mount's device: ${lastErrorName()}`);
    }
  }

  /**
   * Writes a whole reply.
   *
   * @param data follows the reply, when that is the header of data
   * @returns false if nobody waits for it any more: the request was withdrawn, or the filesystem is unmounted
   * @throws AgentError `mount_failed` for a reply that does not fit its request
   */
  write(reply: Buffer, data?: Buffer): boolean {
    if (data === undefined) return this.#write(reply, reply.length);
    if (data.length > MAX_COPIED_BYTES) return this.#writeBoth(reply, data);
    reply.copy(this.#copied);
    data.copy(this.#copied, reply.length);
    return this.#write(this.#copied, reply.length + data.length);
  }

  /**
   * Sends a notification in a thread of Node's pool, because its write can wait for the reply to a request.
   *
   * @returns false if the kernel does not know the node or the name, or the filesystem is unmounted
   */
  async notify(notification: Buffer): Promise<boolean> {
    try {
      await writeInPool(this.descriptor, notification, 0, notification.length, null);
      return true;
    } catch (error) {
      if (["ENOENT", "ENODEV", "ENOTDIR", "ENOTEMPTY", "EBADF"].includes(systemCode(error) ?? ""))
        return false;
      throw new AgentError("mount_failed", `cannot notify the kernel of a change: ${systemCode(error)}`);
    }
  }

  /** Ends the connection: programs that use the mount get ENOTCONN. */
  [Symbol.dispose](): void {
    closeSync(this.descriptor);
  }

  #write(bytes: Buffer, length: number): boolean {
    while (systemCalls().write(this.descriptor, bytes, BigInt(length)) !== length) {
      const error = lastErrno();
      if (error === ENOENT || error === ENODEV) return false;
      if (error !== EINTR)
        throw new AgentError("mount_failed", `cannot write to the mount's device: ${lastErrorName()}`);
    }
    return true;
  }

  #writeBoth(reply: Buffer, data: Buffer): boolean {
    try {
      writevSync(this.descriptor, [reply, data]);
      return true;
    } catch (error) {
      const code = systemCode(error);
      if (code === "ENOENT" || code === "ENODEV") return false;
      throw new AgentError("mount_failed", `cannot write to the mount's device: ${code}`);
    }
  }
}
