import { after, before } from "node:test";
import { Secret } from "@devplat/base";
import { VaultClient } from "@devplat/secret-store";
import { startVault, type Vault } from "@devplat/testkit";

/** A client with all rights. */
export function rootClient({ address, rootToken }: Vault): VaultClient {
  return new VaultClient({ address, token: () => new Secret(rootToken) });
}

/** Starts a Vault for the tests of a file or suite. @returns its client with all rights, from the first test on */
export function useVaultClient(): () => VaultClient {
  let vault: Vault | undefined;
  let client: VaultClient | undefined;
  before(async () => {
    vault = await startVault();
    client = rootClient(vault);
  });
  after(async () => {
    await client?.close();
    await vault?.stop();
  });
  return () => client!;
}
