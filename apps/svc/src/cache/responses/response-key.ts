import { createHash } from "node:crypto";
import {
  canonicalFetchSteps,
  type CommandRequest,
  type FetchRequest,
  type ObjectFormat,
  type Steps,
} from "@devplat/git-protocol";

/** Version of the key's text. It is raised when the text changes; older files are then never found again. */
const KEY_VERSION = 1;
/** Lines that are hashed between two pauses: well below a millisecond. */
const LINES_PER_STEP = 1024;

export interface ResponseKeyParts {
  readonly format: ObjectFormat;
  readonly capabilities: CommandRequest["capabilities"];
  readonly fetch: FetchRequest;
  /** Current objects of the `want-ref` and `deepen-not` names, sorted. */
  readonly resolved: readonly string[];
  /** Digest of the tags known; only for requests with `include-tag`. */
  readonly tags: string | undefined;
}

/**
 * Whether a response to this request may be stored or shared at all. Not with
 * - an unknown argument: it might request objects that the check of the wants does not see;
 * - `packfile-uris`: the response holds addresses that expire, or that are secrets;
 * - `sideband-all`: the response is framed in a way that is not checked here;
 * - no want at all.
 */
export function isStorableRequest(fetch: FetchRequest): boolean {
  if (fetch.unknown.length > 0 || fetch.packfileUris !== undefined || fetch.sidebandAll) return false;
  return fetch.wants.length > 0 || fetch.wantRefs.length > 0;
}

/**
 * The name of a response file: SHA-256 of the canonical request, in hexadecimal. `agent` and `session-id` are dropped
 * because they do not change the response; everything else that may is kept, `server-option` included. Pauses now and then,
 * so that the caller can let other work run.
 */
export function* responseKeySteps(parts: ResponseKeyParts): Steps<string> {
  const capabilities = parts.capabilities.filter(
    (text) => !/^(?:agent|session-id|object-format)(?:=|$)/.test(text),
  );
  const args = yield* canonicalFetchSteps(parts.fetch);
  const [before, after] = [
    [KEY_VERSION, parts.format, capabilities],
    [parts.resolved, parts.tags ?? null],
  ].map((values) => JSON.stringify(values).slice(1, -1));
  // The text is that of one JSON array with all of it, which is not made in one piece.
  const hash = createHash("sha256").update(`[${before},[`);
  for (let from = 0; from < args.length; from += LINES_PER_STEP) {
    const lines = JSON.stringify(args.slice(from, from + LINES_PER_STEP)).slice(1, -1);
    hash.update(from === 0 ? lines : `,${lines}`);
    if (args.length > LINES_PER_STEP) yield;
  }
  return hash.update(`],${after}]`).digest("hex");
}
