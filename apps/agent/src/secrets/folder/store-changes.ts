import type { SecretChange } from "@devplat/secret-store";
import type { AgentStatus } from "../../status.ts";

/** Changes of the secrets store, for parts of the daemon that keep something of it. One part follows the store for all. */
export interface StoreChanges {
  /** With `connected`, every change is reported. Otherwise the listener also has to poll. */
  readonly state: AgentStatus["sync"]["events"];
  /** Whether the store was not asked yet if it reports changes. */
  readonly isProbing: boolean;
  /** Calls back for each change until the signal fires. With the path `""`, anything may have changed. */
  onChange(listener: (change: SecretChange) => void, signal: AbortSignal): void;
}
