import { lateLibc } from "@devplat/base/libc";

/** System calls that Node has no name for. The first call binds them. @throws where Node cannot call the C library */
export const systemCalls = lateLibc({
  close: { arguments: ["int32"], return: "int32" },
  eventfd: { arguments: ["uint32", "int32"], return: "int32" },
  fcntl: { arguments: ["int32", "int32", "int32"], return: "int32" },
  mincore: { arguments: ["pointer", "uint64", "buffer"], return: "int32" },
  mmap: { arguments: ["pointer", "uint64", "int32", "int32", "int32", "int64"], return: "pointer" },
  munmap: { arguments: ["pointer", "uint64"], return: "int32" },
  poll: { arguments: ["buffer", "uint64", "int32"], return: "int32" },
  read: { arguments: ["int32", "buffer", "uint64"], return: "int32" },
  sendfile: { arguments: ["int32", "int32", "buffer", "uint64"], return: "int32" },
  syscall: { arguments: ["int64", "int64", "buffer", "buffer", "int64"], return: "int64" },
  write: { arguments: ["int32", "buffer", "uint64"], return: "int32" },
});
