import { dlopen, getInt32, type FunctionDefinitions, type WrappedFunctionsFromDefinitions } from "node:ffi";

/** Binds functions of the C library that Node itself uses. They block the thread. */
export function bindLibc<const Definitions extends FunctionDefinitions>(
  definitions: Definitions,
): WrappedFunctionsFromDefinitions<Definitions> {
  return dlopen(null, definitions).functions;
}

/** Linux's error number of the last call that failed, in this thread. Read it immediately after the call. */
export function lastErrno(): number {
  // Each thread has its own place for the number, and its own copy of this module.
  place ??= locateErrno();
  return getInt32(place);
}

let place: bigint | undefined;

function locateErrno(): bigint {
  const { __errno_location: locate } = bindLibc({
    __errno_location: { arguments: [], return: "pointer" },
  });
  return locate();
}
