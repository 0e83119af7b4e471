import type { Logger } from "@devplat/base";

/** Numbers of getrlimit(2), on Linux, macOS and BSD. */
const RLIMIT_CORE = 4;
/** Number of prctl(2). */
const PR_SET_DUMPABLE = 4;

/**
 * Prevents core files of this process and of its children, because its memory holds tokens and keys. On Linux, no other process
 * of the user can read the memory then, either. Never throws.
 */
export async function preventCoreDumps(logger: Logger): Promise<void> {
  if (process.platform === "win32") return;
  try {
    const { dlopen } = await import("node:ffi");
    const { functions } = dlopen(null, {
      setrlimit: { arguments: ["int32", "buffer"], return: "int32" },
    });
    // Both the soft and the hard limit, so that no child raises it.
    const failed = functions.setrlimit(RLIMIT_CORE, Buffer.alloc(2 * BigUint64Array.BYTES_PER_ELEMENT)) !== 0;
    if (failed) logger.warn({}, "core files of this process cannot be prevented");
    if (process.platform === "linux") setNotDumpable(dlopen, logger);
  } catch (error) {
    logger.warn({ err: error }, "core files of this process cannot be prevented");
  }
}

function setNotDumpable(dlopen: (typeof import("node:ffi"))["dlopen"], logger: Logger): void {
  const argument = "uint64";
  const { functions } = dlopen(null, {
    prctl: { arguments: ["int32", argument, argument, argument, argument], return: "int32" },
  });
  if (functions.prctl(PR_SET_DUMPABLE, 0n, 0n, 0n, 0n) !== 0) {
    logger.warn({}, "the memory of this process cannot be hidden from other processes of the user");
  }
}
