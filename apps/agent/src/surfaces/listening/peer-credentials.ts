import { closeSync, readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { lateLibc } from "@devplat/base/libc";
import { descriptorOf } from "@devplat/base/socket-descriptor";

const libc = lateLibc({
  getsockopt: { arguments: ["int32", "int32", "int32", "buffer", "buffer"], return: "int32" },
});

/** Linux's numbers (asm-generic/socket.h). */
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
/** Since Linux 6.5. */
const SO_PEERPIDFD = 77;
/** `struct ucred`: pid, uid, gid. */
const UCRED_BYTES = 12;
const INT_BYTES = 4;

/** The process at the other end of a Unix socket, as the kernel noted it when the socket was connected. */
export interface PeerCredentials {
  readonly uid: number;
  /** Undefined for a process of another PID namespace. */
  readonly pid: number | undefined;
  /**
   * Whether the PID still belongs to that process. Undefined where the kernel has no descriptors of processes for sockets.
   * The caller must release it.
   */
  readonly handle: ProcessHandle | undefined;
}

/** A descriptor of a process (pidfd_open(2)). No other process gets its PID unnoticed. */
export interface ProcessHandle extends Disposable {
  isAlive(): boolean;
}

/** Reads the credentials of a connected socket. @returns undefined where the system does not tell */
export function peerCredentials(socket: Socket): PeerCredentials | undefined {
  const descriptor = descriptorOf(socket);
  if (process.platform !== "linux" || descriptor === undefined) return undefined;
  const credentials = socketOption(descriptor, SO_PEERCRED, UCRED_BYTES);
  if (credentials === undefined) return undefined;
  const pid = credentials.readInt32LE(0);
  return {
    uid: credentials.readUInt32LE(INT_BYTES),
    pid: pid > 0 ? pid : undefined,
    handle: pid > 0 ? processHandle(descriptor, pid) : undefined,
  };
}

/** Whether the kernel says that a process of this user is at the other end. */
export function isOwnUser(socket: Socket): boolean {
  const credentials = peerCredentials(socket);
  credentials?.handle?.[Symbol.dispose]();
  return credentials !== undefined && credentials.uid === process.geteuid?.();
}

function processHandle(descriptor: number, pid: number): ProcessHandle | undefined {
  const own = socketOption(descriptor, SO_PEERPIDFD, INT_BYTES)?.readInt32LE(0);
  if (own === undefined) return undefined;
  return {
    isAlive() {
      // The line is "Pid:\t-1" after the end of the process.
      const shown = /^Pid:\s*(-?\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${own}`, "latin1"))?.[1];
      return Number(shown) === pid;
    },
    [Symbol.dispose]: () => closeSync(own),
  };
}

function socketOption(descriptor: number, option: number, bytes: number): Buffer | undefined {
  const value = Buffer.alloc(bytes);
  const length = Buffer.alloc(INT_BYTES);
  length.writeInt32LE(bytes);
  const failed = libc().getsockopt(descriptor, SOL_SOCKET, option, value, length) !== 0;
  return failed || length.readInt32LE(0) !== bytes ? undefined : value;
}
