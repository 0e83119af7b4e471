import { SvcError } from "../../errors.ts";
import { wrapMethods } from "../wrapped.ts";

/** Runs queries. Errors of the driver become the error of the store's contract. */
export async function withDatabaseErrors<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw new SvcError("database_unavailable", "The database did not answer a query", {
      remedy: "retry",
      cause: error,
    });
  }
}

/** A part of the store whose methods run {@link withDatabaseErrors}. */
export function guarded<Part extends object>(part: Part): Part {
  return wrapMethods(part, withDatabaseErrors);
}
