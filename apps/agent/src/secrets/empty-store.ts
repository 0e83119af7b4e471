import { SecretStoreError, type SecretStore } from "@devplat/secret-store";

const nothing = (path: string): Promise<never> =>
  Promise.reject(new SecretStoreError("not_found", `nothing is stored at "${path}"`));

/** Nothing changes in what is not there. */
async function* never(signal: AbortSignal): AsyncGenerator<never> {
  if (!signal.aborted) {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  }
  yield* [];
}

/** An embedded store that has not been made yet, for a look that must not make it. */
export const emptyStore: SecretStore = {
  driver: "embedded",
  list: (folder) => (folder === "" ? Promise.resolve([]) : nothing(folder)),
  read: nothing,
  metadata: nothing,
  write: nothing,
  delete: nothing,
  watch: never,
  ping: () => Promise.resolve(),
  close: () => Promise.resolve(),
};
