import type { Clock, Logger } from "@devplat/base";
import type { KnownHost } from "@devplat/ssh-protocol";
import type { SshConfirm } from "../../../config/sections/ssh-agent-section.ts";
import type { PeerProcess } from "../peer-process/peer-process.ts";
import type { RelayedAgent, RelayedConnection } from "../relay/relayed-agent.ts";
import type { AgentLock } from "./agent-lock.ts";
import type { Confirmations } from "./confirmations.ts";
import type { HostDirectory } from "./host-directory.ts";
import type { OwnKeys } from "./own-keys.ts";
import type { SignatureLog } from "./signature-log.ts";

/** Parts that all connections share. */
export interface SessionParts {
  readonly ownKeys: OwnKeys;
  readonly lock: AgentLock;
  readonly confirmations: Confirmations;
  readonly hosts: HostDirectory;
  readonly signatures: SignatureLog;
  readonly confirm: () => SshConfirm;
  /** Called for each list that lacks keys because the client sent no session-bind. */
  readonly onWithheld: (keys: number) => void;
  readonly onChange: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Keys that a socket offers. */
export interface SocketScope {
  /** Names of sources; undefined: all. */
  readonly sources: readonly string[] | undefined;
  readonly relays: readonly RelayedAgent[];
  /** Hosts that are known on this socket only. */
  readonly knownHosts: readonly KnownHost[];
}

/** A client, and what it may reach. */
export interface Connection {
  readonly scope: SocketScope;
  /** Undefined where the process cannot be found. */
  readonly caller: PeerProcess | undefined;
  /** The other agents of the scope that may be asked for this client. */
  readonly relays: readonly RelayedConnection[];
}

/** Fields of log lines that name the client. */
export function callerFields({ caller }: Connection): {
  readonly pid: number | undefined;
  readonly program: string | undefined;
} {
  return { pid: caller?.pid, program: caller?.program ?? caller?.name };
}
