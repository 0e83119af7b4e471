import { SecretStoreError, type SecretStore } from "@devplat/secret-store";

const nothing = (path: string): Promise<never> =>
  Promise.reject(new SecretStoreError("not_found", `nothing is stored at "${path}"`));

/** An embedded store that has not been made yet, for a look that must not make it. */
export const emptyStore: SecretStore = {
  driver: "embedded",
  list: (folder) => (folder === "" ? Promise.resolve([]) : nothing(folder)),
  read: nothing,
  metadata: nothing,
  write: nothing,
  delete: nothing,
  ping: () => Promise.resolve(),
  close: () => Promise.resolve(),
};
