import type { RemoteView } from "../../remote-view.ts";
import type { RemoteEntry } from "./file/remote-entry.ts";
import type { OfferedKey } from "./host-keys.ts";

/** The keys of an entry that can be changed. Null: the default again. Durations are milliseconds. */
export type RemoteEdit = {
  readonly [Key in keyof Omit<RemoteEntry, "host" | "host_key" | "hop_keys">]?: RemoteEntry[Key] | null;
};

/** A remote to be added. */
export interface NewRemote {
  readonly host: string;
  readonly settings: RemoteEdit;
  /** A key to pin, as in a line of known_hosts: the host is not asked for another. */
  readonly hostKey: string | undefined;
  /** Fingerprints that a person has confirmed: one for each jump host, and one for the host. */
  readonly accepted: readonly string[];
  /** Stores the entry without a connection. */
  readonly force: boolean;
}

/** A key to be confirmed by a person: nothing was saved. Repeat the request with its fingerprint. */
export interface UnconfirmedKey {
  readonly state: "unconfirmed";
  readonly offered: OfferedKey;
}

/** Use cases of remotes, for the API, the pages and the command line. */
export interface RemoteControl {
  /** In the order of ssh.yaml. */
  list(): readonly RemoteView[];
  /** @throws ForwardError `host_unknown` */
  get(host: string): RemoteView;
  /** Why ssh.yaml cannot be used now; running forwards stay up. */
  fileProblem(): string | undefined;
  /**
   * Learns the host's key, connects once, and saves the entry.
   * @throws ForwardError `host_exists` | `file_invalid` | `configuration_refused` | ConnectionError; nothing is saved then
   */
  add(
    remote: NewRemote,
    signal: AbortSignal,
  ): Promise<{ state: "saved"; remote: RemoteView } | UnconfirmedKey>;
  /** @throws ForwardError `host_unknown` | `file_invalid` */
  edit(host: string, edit: RemoteEdit): Promise<RemoteView>;
  /** @throws ForwardError `host_unknown` | `file_invalid` */
  remove(host: string): Promise<void>;
  /**
   * Asks the host for its key again, and pins it if a person has confirmed it.
   * @param accepted fingerprints that a person has confirmed, one for each host on the way
   * @throws ForwardError `host_unknown` | `file_invalid` | ConnectionError
   */
  repin(
    host: string,
    accepted: readonly string[],
    signal: AbortSignal,
  ): Promise<{ state: "saved"; remote: RemoteView } | UnconfirmedKey>;
  /** Another attempt now. @throws ForwardError `host_unknown` */
  retry(host: string): void;
  /** Revokes the tokens that are lent to the host. @throws ForwardError `host_unknown` */
  revoke(host: string): Promise<void>;
  /**
   * The answer of the user to the question whether a token may be lent.
   * @returns false if no program of the host waits for it
   * @throws ForwardError `host_unknown`
   */
  consent(host: string, allowed: boolean): boolean;
  /** Calls back after each change of a state, an entry or a lent token, by anybody, until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void;
}
