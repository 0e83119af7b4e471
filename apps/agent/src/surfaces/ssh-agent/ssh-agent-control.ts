import type { Secret } from "@devplat/base";
import type { SshAgentStatus } from "../../ssh-agent-view.ts";

/** Use cases of the SSH agent, for the API, the pages and the command line. */
export interface SshAgentControl {
  status(): SshAgentStatus;
  /** Looks the keys up in the store again. */
  refresh(signal: AbortSignal): Promise<void>;
  /** Looks for a key that {@link unlockKey} can open. @throws AgentRefusal `key_unknown` */
  findKey(name: string): Promise<void>;
  /** Opens keys with a passphrase. @param name comment, path or fingerprint @throws AgentRefusal `key_unknown` | `passphrase_wrong` */
  unlockKey(name: string, passphrase: Secret): Promise<void>;
  /** Shows own keys again that `ssh-add -D` has hidden. */
  showKeys(): void;
  /** Answers a question of `status().questions`. @returns false if nobody waits for the answer any more */
  answer(id: string, answer: { readonly confirmed: boolean } | { readonly passphrase: Secret }): boolean;
  onChange(listener: () => void, signal: AbortSignal): void;
}
