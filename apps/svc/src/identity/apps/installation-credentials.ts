import type { Secret } from "@devplat/base";
import type { Level, TokenRecord } from "../../storage/store.ts";

/** Why the code host gives no installation token: the words are for the caller, with what to do. */
export type InstallationOutcome =
  | { readonly kind: "token"; readonly token: Secret; readonly expiresAt: number }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unavailable"; readonly message: string };

/** Installation tokens of registered apps, cached until 5 minutes before their expiry. */
export interface InstallationCredentials {
  /** For an agent token: narrowed to its repositories and scopes, by its app and installation. */
  forToken(record: TokenRecord): Promise<InstallationOutcome>;
  /** For work of our own (warming): read access to one repository by the default app; undefined: no app reaches it. */
  forRepository(owner: string, name: string, level: Level): Promise<Secret | undefined>;
  /** Drops and revokes at the code host what was issued for the agent token. */
  revokeFor(tokenId: string): Promise<void>;
}
