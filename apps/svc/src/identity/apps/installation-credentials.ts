import type { Secret } from "@devplat/base";
import type { Level, TokenRecord } from "../../storage/store.ts";

/** Reason why the code host gives no installation token. The message is for the caller and says what to do. */
export type InstallationOutcome =
  | { readonly kind: "token"; readonly token: Secret; readonly expiresAt: number }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unavailable"; readonly message: string };

/** Installation tokens of registered apps, cached until 5 minutes before their expiry. */
export interface InstallationCredentials {
  /** Token for an agent token, limited to its repositories and scopes, from its app and installation. */
  forToken(record: TokenRecord): Promise<InstallationOutcome>;
  /** Token for warming: read access to one repository, from the default app; undefined: no app reaches it. */
  forRepository(owner: string, name: string, level: Level): Promise<Secret | undefined>;
  /** Removes the installation token that was issued for the agent token, and revokes it at the code host. */
  revokeFor(tokenId: string): Promise<void>;
}
