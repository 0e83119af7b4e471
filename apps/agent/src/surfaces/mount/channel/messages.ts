import type { SecretStoreErrorCode } from "@devplat/secret-store";

/** Settings of the mount server. The daemon sends them before the mount, and after a change of the configuration. */
export interface MountSettings {
  /** Absolute path. */
  readonly mountpoint: string;
  /** Socket of the mount helper, which mounts where this process cannot. */
  readonly helper: string;
  readonly mayWrite: boolean;
  /** `both` adds a directory `<name>.d` with one file for each field. */
  readonly layout: "json" | "both";
  /** Time for which listings and documents are used again, in milliseconds. */
  readonly cacheTtlMs: number;
  readonly rendered: readonly RenderedFileSettings[];
  /** Paths of secrets that enrolments own. Nobody else writes them. */
  readonly owned: readonly string[];
}

/** A file that a rule renders below the mount, and that is on no disk. */
export interface RenderedFileSettings {
  /** Relative to the mountpoint, without a slash at either end. */
  readonly path: string;
  /** Real paths of the programs that may read it. Undefined: all. */
  readonly allow: readonly string[] | undefined;
}

/** Requests of the mount server to the daemon. Paths are those of the secrets store. */
export type MountRequest =
  | { readonly kind: "list"; readonly folder: string }
  | { readonly kind: "read"; readonly path: string }
  /** `fields` is a JSON object. */
  | { readonly kind: "write"; readonly path: string; readonly fields: string; readonly ifVersion: number }
  | { readonly kind: "delete"; readonly path: string }
  /** The content of a rendered file. */
  | { readonly kind: "render"; readonly path: string };

/** A secret. `fields` is its JSON object, with numbers as stored. */
export interface StoredSecret {
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly fields: string;
}

/** Responses by kind of the request. */
export interface MountReplies {
  /** Names as in `SecretStore.list`: folders end in `/`. */
  readonly list: readonly string[];
  readonly read: StoredSecret;
  readonly write: { readonly version: number };
  readonly delete: null;
  /** `changedAt`: time of the newest secret in it, in milliseconds since the epoch. */
  readonly render: { readonly content: string; readonly changedAt: number };
}

export type MountReply = MountReplies[MountRequest["kind"]];

/**
 * Why the daemon did not do what a request asks: a code of the store, or
 * - `owned`: an enrolment owns this secret.
 * - `not_rendered`: the rule has no content now, for example because a secret of it is missing.
 * - `failed`: an unexpected error, which the daemon has logged.
 */
export type MountFaultCode = SecretStoreErrorCode | "owned" | "not_rendered" | "failed";

/** An open of a secret's file, for the log. */
export interface FileOpen {
  /** Path below the mountpoint. */
  readonly path: string;
  readonly pid: number;
  /** Program of the process; undefined if it cannot be found out. */
  readonly program: string | undefined;
  /** Opens of this file by this program in the last 10 s that were not reported, and this one. */
  readonly count: number;
  /** The program is not among those that may read the file. */
  readonly refused: boolean;
}

/** Counts and texts for `agent status`. */
export interface MountReport {
  /** Names of the store that no file can have: too long, or taken by a folder. In listings that are known. */
  readonly omittedNames: number;
  /** Files below the mount whose content is only in memory, because the store did not take it. With the reason. */
  readonly unsaved: readonly { readonly path: string; readonly reason: string }[];
}

/** Messages of the mount server. */
export type ServerMessage =
  | { readonly kind: "request"; readonly id: number; readonly request: MountRequest }
  /** Nobody waits for the response any more. */
  | { readonly kind: "cancel"; readonly id: number }
  | { readonly kind: "mounted" }
  /** Nothing can be mounted now. The server ends. `isFinal`: not before something at the mountpoint is changed. */
  | {
      readonly kind: "refused";
      readonly message: string;
      readonly hint: string | undefined;
      readonly isFinal: boolean;
    }
  | { readonly kind: "opened"; readonly open: FileOpen }
  | { readonly kind: "report"; readonly report: MountReport }
  | { readonly kind: "failure"; readonly message: string }
  /** The kernel has ended the mount. The server ends. */
  | { readonly kind: "unmounted" }
  /** Everything that was typed is stored or reported. The daemon may unmount. */
  | { readonly kind: "settled" }
  /** The response to `ping`. */
  | { readonly kind: "pong" };

/** Messages of the daemon. */
export type DaemonMessage =
  | { readonly kind: "settings"; readonly settings: MountSettings }
  | { readonly kind: "reply"; readonly id: number; readonly reply: MountReply }
  | { readonly kind: "fault"; readonly id: number; readonly code: MountFaultCode }
  /** A secret has changed. `""`: anything may have changed. */
  | { readonly kind: "changed"; readonly path: string }
  /** Rendered files have changed. */
  | { readonly kind: "rendered" }
  /** Store what can be stored, and say `settled`. */
  | { readonly kind: "settle" }
  /** Say `pong`. */
  | { readonly kind: "ping" };
