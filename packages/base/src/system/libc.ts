import { dlopen, getInt32, type FunctionDefinitions, type WrappedFunctionsFromDefinitions } from "node:ffi";

/** Binds functions of the C library that Node itself uses. They block the thread. */
export function bindLibc<const Definitions extends FunctionDefinitions>(
  definitions: Definitions,
): WrappedFunctionsFromDefinitions<Definitions> {
  const { functions } = dlopen(null, definitions);
  // Now, because finding the place can change the number that is there.
  errnoPlace();
  return functions;
}

/** Linux's error number of the last call that failed, in this thread. Read it immediately after the call. */
export function lastErrno(): number {
  return getInt32(errnoPlace());
}

let place: bigint | undefined;

/** Each thread has its own place for the number, and its own copy of this module. */
function errnoPlace(): bigint {
  if (place === undefined) {
    const { functions } = dlopen(null, { __errno_location: { arguments: [], return: "pointer" } });
    const { __errno_location: locate } = functions;
    place = locate();
  }
  return place;
}
