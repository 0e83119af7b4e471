import type { SshConfirm } from "../../../config/sections/ssh-agent-section.ts";

/** Configuration of the SSH agent. Paths are absolute. */
export interface SshAgentSettings {
  /** The main socket. */
  readonly path: string;
  /** When the user is asked before a signature. A key's own setting comes first. */
  readonly confirm: SshConfirm;
  /** Sockets of other SSH agents, whose keys are listed after the own ones. */
  readonly relay: readonly string[];
  /** More sockets; each lists only the keys of the sources with these names. */
  readonly sockets: readonly { readonly path: string; readonly keys: readonly string[] }[];
}
