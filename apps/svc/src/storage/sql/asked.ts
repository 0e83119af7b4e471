import { SvcError } from "../../errors.ts";

/** Runs a query; what the driver throws becomes the contract's error. */
export async function asked<T>(query: () => Promise<T>): Promise<T> {
  try {
    return await query();
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw new SvcError("database_unavailable", "The database did not answer a query", {
      remedy: "retry",
      cause: error,
    });
  }
}
