import type { CommandRequest } from "@devplat/git-protocol";
import type { RefsResponse } from "./ref-probe.ts";

/** A credential and the repository that it is used for. */
export interface Access {
  /** Value of `Authorization` for the code host; undefined: none. */
  readonly authorization: string | undefined;
  readonly target: { readonly owner: string; readonly name: string };
}

/** A request that asks to read a repository. */
export interface AccessRequest extends Access {
  readonly target: Access["target"] & {
    /** Path of `git-upload-pack` at the code host. */
    readonly upstreamPath: string;
  };
  readonly policy: { readonly timeoutSeconds: number };
  readonly context: { readonly remoteAddress: string };
}

/** The code host refused; its response is for the caller. */
export type Refusal = Extract<RefsResponse, { kind: "refused" }>;

/** Whether a fetch may read. `sentAt` is the time when the request to the code host was sent. */
export type Decision = { readonly kind: "authorized"; readonly sentAt: number } | Refusal;

/** Requests to the code host that a decision about a fetch needs, with the caller's credential. */
export interface RefQueries {
  /**
   * Asks for refs, and records an authorization or a refusal.
   *
   * @throws GitError if the code host does not answer, or the client causes too many probes
   */
  ask(request: AccessRequest, command: CommandRequest, prefixes: readonly string[]): Promise<RefsResponse>;
  /** Confirms a decision that was made at `sentAt`, immediately before the first byte of cached data is sent. */
  confirm(
    request: AccessRequest,
    command: CommandRequest,
    prefixes: readonly string[],
    sentAt: number,
  ): Promise<Decision>;
}
