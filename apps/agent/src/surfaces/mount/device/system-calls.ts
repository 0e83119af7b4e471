import { constants } from "node:os";
import { lateLibc, lastErrno } from "@devplat/base/libc";

/** System calls that Node has no name for. The first call binds them. */
export const systemCalls = lateLibc({
  read: { arguments: ["int32", "buffer", "uint64"], return: "int32" },
  write: { arguments: ["int32", "buffer", "uint64"], return: "int32" },
  ppoll: { arguments: ["buffer", "uint64", "buffer", "pointer"], return: "int32" },
  sched_yield: { arguments: [], return: "int32" },
  fcntl: { arguments: ["int32", "int32", "int32"], return: "int32" },
  mount: { arguments: ["string", "string", "string", "uint64", "string"], return: "int32" },
  umount2: { arguments: ["string", "int32"], return: "int32" },
  socketpair: { arguments: ["int32", "int32", "int32", "buffer"], return: "int32" },
  socket: { arguments: ["int32", "int32", "int32"], return: "int32" },
  connect: { arguments: ["int32", "buffer", "uint32"], return: "int32" },
  sendmsg: { arguments: ["int32", "buffer", "int32"], return: "int32" },
  recvmsg: { arguments: ["int32", "buffer", "int32"], return: "int32" },
});

/** Name of the last call's error, such as `EPERM`. */
export function lastErrorName(): string {
  const number = lastErrno();
  return Object.entries(constants.errno).find(([, value]) => value === number)?.[0] ?? `error ${number}`;
}
