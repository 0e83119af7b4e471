import type { Secret } from "@devplat/base";
import type { ObjectFormat } from "@devplat/git-protocol";

/** The repository to be warmed, and the token for it. */
export interface WarmQuestion {
  readonly owner: string;
  readonly name: string;
  readonly token: Secret;
  /** Milliseconds of silence after which the code host is given up. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

/** The code host refused, or sent an unexpected response. The message names the status, never the token. */
export class WarmRefused extends Error {}

/** The git requests of warming to the code host. */
export interface WarmSource {
  /** @throws WarmRefused, GitError */
  objectFormat(question: WarmQuestion): Promise<ObjectFormat>;
  /**
   * The whole response to an `ls-refs`; undefined: too long to be kept.
   *
   * @throws WarmRefused, GitError
   */
  lsRefs(
    question: WarmQuestion,
    format: ObjectFormat,
    prefixes: readonly string[],
  ): Promise<Buffer | undefined>;
  /** The framed response to a `fetch`. @param body the request. @throws WarmRefused, GitError */
  fetch(question: WarmQuestion, body: Buffer): Promise<AsyncIterable<Buffer>>;
}
