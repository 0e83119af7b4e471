import { messageOf, type Logger } from "@devplat/base";
import { bindLibc } from "@devplat/base/libc";

/** Numbers of getrlimit(2), on Linux, macOS and BSD. */
const RLIMIT_CORE = 4;
/** Soft and hard limit, each of 64 bits. */
const RLIMIT_BYTES = 16;
/** Number of prctl(2). */
const PR_SET_DUMPABLE = 4;

/**
 * Prevents core files of this process and of its children, because its memory holds tokens and keys. On Linux, no other process
 * of the user can read the memory then, either. Never throws.
 */
export function preventCoreDumps(logger: Logger): void {
  if (process.platform === "win32") return;
  try {
    const { setrlimit } = bindLibc({ setrlimit: { arguments: ["int32", "buffer"], return: "int32" } });
    // The hard limit too, so that no child raises it.
    if (setrlimit(RLIMIT_CORE, Buffer.alloc(RLIMIT_BYTES)) !== 0) throw new Error("setrlimit failed");
    if (process.platform === "linux") hideMemory();
  } catch (error) {
    logger.warn({ reason: messageOf(error) }, "core files of this process cannot be prevented");
  }
}

function hideMemory(): void {
  const { prctl } = bindLibc({
    prctl: { arguments: ["int32", "uint64", "uint64", "uint64", "uint64"], return: "int32" },
  });
  if (prctl(PR_SET_DUMPABLE, 0n, 0n, 0n, 0n) !== 0) throw new Error("prctl failed");
}
