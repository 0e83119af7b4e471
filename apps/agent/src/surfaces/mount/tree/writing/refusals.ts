import { constants } from "node:os";
import { StoreFault, type FileError } from "../file-error.ts";

const { errno } = constants;

/** Whether the same bytes would be refused again: it is not the store that is away. */
export function isFinal(error: FileError): boolean {
  return error.errno !== errno.EIO && error.errno !== errno.ETIMEDOUT;
}

/** Why bytes are not in the store, in words for `agent status`. */
export function reasonOf(error: FileError): string {
  switch (error.errno) {
    case errno.EINVAL:
      return error instanceof StoreFault ? "the store cannot keep this value" : "it is not one JSON object";
    case errno.ESTALE:
      return "the secret was changed in the store after it was opened";
    case errno.EACCES:
      return error instanceof StoreFault && error.code === "owned"
        ? "an enrolment owns this secret"
        : "the store denies the change, or nobody is signed in";
    case errno.ENOENT:
      return "the secret does not exist any more";
    case errno.EFBIG:
      return "it is larger than the store accepts";
    default:
      return "the store cannot be reached";
  }
}
