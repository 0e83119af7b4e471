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

/** As {@link bindLibc}, at the first use: a program that never needs the functions does not bind them. */
export function lateLibc<const Definitions extends FunctionDefinitions>(
  definitions: Definitions,
): () => WrappedFunctionsFromDefinitions<Definitions> {
  let functions: WrappedFunctionsFromDefinitions<Definitions> | undefined;
  return () => (functions ??= bindLibc(definitions));
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
