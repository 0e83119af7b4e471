import { Secret } from "@devplat/base";
import { VaultClient } from "@devplat/secret-store";
import type { Vault } from "@devplat/testkit";

/** A client with all rights. */
export function rootClient({ address, rootToken }: Vault): VaultClient {
  return new VaultClient({ address, token: () => new Secret(rootToken) });
}
