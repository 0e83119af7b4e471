import { SvcError } from "../../errors.ts";

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

type Method = (...parameters: unknown[]) => Promise<unknown>;

/** A part of the store whose methods run {@link withDatabaseErrors}. */
export function guarded<Part extends object>(part: Part): Part {
  return Object.fromEntries(
    Object.entries<Method>(part as Record<string, Method>).map(([name, method]) => [
      name,
      async (...parameters: unknown[]) => withDatabaseErrors(async () => method(...parameters)),
    ]),
  ) as Part;
}
