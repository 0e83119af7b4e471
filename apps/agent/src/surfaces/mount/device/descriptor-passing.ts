import { closeSync } from "node:fs";
import { getRawPointer } from "node:ffi";
import { unixAddress } from "@devplat/base/unix-address";
import { AgentError } from "../../../errors.ts";
import { Poller } from "./poller.ts";
import { lastErrorName, systemCalls } from "./system-calls.ts";

const AF_UNIX = 1;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0o2_000_000;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const MSG_NOSIGNAL = 0x4000;
const MSG_CMSG_CLOEXEC = 0x4000_0000;
/** `struct msghdr` and `struct iovec` on 64-bit Linux. */
const MSGHDR_BYTES = 56;
const IOVEC_BYTES = 16;
/** `struct cmsghdr` with one descriptor, without and with its padding. */
const CONTROL_LENGTH = 20;
const CONTROL_BYTES = 24;
/** Maximum text next to a descriptor, in bytes. */
const MAX_TEXT_BYTES = 4096;

/** Text of a message, and the descriptor that came with it. The caller must close the descriptor. */
export interface DescriptorMessage {
  /** Empty at the end of the stream. */
  readonly text: string;
  readonly descriptor: number | undefined;
}

/** Makes two connected sockets that no child inherits. The caller must close both. @throws AgentError `mount_failed` */
export function socketPair(): [number, number] {
  const pair = Buffer.alloc(8);
  if (systemCalls().socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) !== 0)
    throw new AgentError("mount_failed", `cannot make a pair of sockets: ${lastErrorName()}`);
  return [pair.readInt32LE(0), pair.readInt32LE(4)];
}

/** Connects to a Unix socket. The caller must close the descriptor. @throws AgentError `mount_failed` */
export function connectSocket(path: string): number {
  const address = unixAddress(path);
  if (address === undefined)
    throw new AgentError("mount_failed", `cannot connect to ${path}: the path is too long`);
  const descriptor = systemCalls().socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw new AgentError("mount_failed", `cannot make a socket: ${lastErrorName()}`);
  if (systemCalls().connect(descriptor, address, address.length) === 0) return descriptor;
  const reason = lastErrorName();
  closeSync(descriptor);
  throw new AgentError("mount_failed", `cannot connect to ${path}: ${reason}`);
}

/** Sends text, and a descriptor if there is one (unix(7), SCM_RIGHTS). @throws AgentError `mount_failed` */
export function sendMessage(socket: number, text: string, descriptor?: number): void {
  const control = Buffer.alloc(CONTROL_BYTES);
  control.writeBigUInt64LE(BigInt(CONTROL_LENGTH), 0);
  control.writeInt32LE(SOL_SOCKET, 8);
  control.writeInt32LE(SCM_RIGHTS, 12);
  control.writeInt32LE(descriptor ?? 0, 16);
  const message = new Message(Buffer.from(text), descriptor === undefined ? undefined : control);
  if (systemCalls().sendmsg(socket, message.header, MSG_NOSIGNAL) < 0)
    throw new AgentError("mount_failed", `cannot send a message for the mount: ${lastErrorName()}`);
}

/**
 * Waits for one message and its descriptor. Blocks the thread.
 *
 * @throws AgentError `mount_failed`, also when nothing comes in time
 */
export function receiveMessage(socket: number, timeoutMs: number): DescriptorMessage {
  const end = performance.now() + timeoutMs;
  const poller = new Poller([socket]);
  while (!poller.wait(Math.max(0, end - performance.now()))) {
    if (performance.now() >= end)
      throw new AgentError("mount_failed", `no message for the mount came within ${timeoutMs} ms`);
  }
  const text = Buffer.alloc(MAX_TEXT_BYTES);
  const control = Buffer.alloc(CONTROL_BYTES);
  const message = new Message(text, control);
  const length = systemCalls().recvmsg(socket, message.header, MSG_CMSG_CLOEXEC);
  if (length < 0)
    throw new AgentError("mount_failed", `cannot receive a message for the mount: ${lastErrorName()}`);
  // The kernel has closed descriptors that did not fit.
  const received =
    message.controlLength >= CONTROL_LENGTH &&
    control.readInt32LE(8) === SOL_SOCKET &&
    control.readInt32LE(12) === SCM_RIGHTS;
  return {
    text: text.toString("utf8", 0, length),
    descriptor: received ? control.readInt32LE(16) : undefined,
  };
}

/** `struct msghdr` with one part. It keeps the buffers that it points to. */
class Message {
  readonly header = Buffer.alloc(MSGHDR_BYTES);
  readonly parts = Buffer.alloc(IOVEC_BYTES);
  readonly text: Buffer;
  readonly control: Buffer | undefined;

  constructor(text: Buffer, control: Buffer | undefined) {
    this.text = text;
    this.control = control;
    this.parts.writeBigUInt64LE(getRawPointer(text), 0);
    this.parts.writeBigUInt64LE(BigInt(text.length), 8);
    this.header.writeBigUInt64LE(getRawPointer(this.parts), 16);
    this.header.writeBigUInt64LE(1n, 24);
    if (control === undefined) return;
    this.header.writeBigUInt64LE(getRawPointer(control), 32);
    this.header.writeBigUInt64LE(BigInt(control.length), 40);
  }

  get controlLength(): number {
    return this.header.readUInt32LE(40);
  }
}
