import { constants } from "node:os";
import type { MountFaultCode } from "../channel/messages.ts";

const { errno } = constants;

/** A failed operation on the mount. The caller gets its error number (errno(3)). */
export class FileError extends Error {
  /** Positive. */
  readonly errno: number;

  constructor(name: keyof typeof errno) {
    super(name);
    this.errno = errno[name];
  }
}

/** Error numbers of the daemon's faults. Others are EIO: the store cannot be asked now. */
const BY_FAULT: Partial<Record<MountFaultCode, keyof typeof errno>> = {
  not_found: "ENOENT",
  not_rendered: "ENOENT",
  denied: "EACCES",
  unauthenticated: "EACCES",
  owned: "EACCES",
  version_conflict: "ESTALE",
  bad_path: "EINVAL",
  unsupported_number: "EINVAL",
  unsupported_text: "EINVAL",
  too_large: "EFBIG",
};

/** A fault of the daemon. */
export class StoreFault extends FileError {
  readonly code: MountFaultCode;

  constructor(code: MountFaultCode) {
    super(BY_FAULT[code] ?? "EIO");
    this.code = code;
  }

  /** The store has decided about this path, so that the answer may be used again. */
  get isDecision(): boolean {
    return ["not_found", "not_rendered", "denied"].includes(this.code);
  }
}
