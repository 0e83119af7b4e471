import { createHash, hash } from "node:crypto";
import { BoundedMap } from "@devplat/base/bounded-map";
import {
  commandArgs,
  decodeCommandBody,
  decodeCommandBodySteps,
  decodeFetchRequest,
  decodeFetchSteps,
  requestObjectFormat,
  type CommandBody,
  type CommandRequest,
  type EncodedCommand,
  type FetchRequest,
  type ObjectFormat,
  type Steps,
} from "@devplat/git-protocol";
import { finishInSlices } from "@devplat/git-store";
import {
  isStorableRequest,
  responseKeySteps,
  type ResponseKeyParts,
} from "../../cache/responses/response-key.ts";

/** Maximum bytes of a body that is remembered: about 20,000 wants. */
const MAX_BODY_BYTES = 1024 * 1024;
/** Bytes of all remembered bodies together. Decoded they take about three times as much. */
const MAX_TOTAL_BYTES = 4 * 1024 * 1024;

/** Bytes that are hashed between two pauses: about a millisecond. */
const DIGEST_STEP_BYTES = 1024 * 1024;

/** A `fetch` of a body, and what follows from its arguments alone. */
export interface DecodedFetch {
  readonly fetch: FetchRequest;
  /** The object format that the request names; undefined: one that is not known here. */
  readonly namedFormat: ObjectFormat | undefined;
  /** Features that it uses and that the code host must offer. */
  readonly features: readonly string[];
  /** Whether its response may be stored or shared at all. */
  readonly isStorable: boolean;
  /**
   * Whether only its arguments decide on the response. Only the code host knows the meaning of a `server-option`, and
   * which objects it leaves out for a client that accepts a `promisor-remote`.
   */
  readonly isPlain: boolean;
}

interface KnownFetch extends DecodedFetch {
  /** The last response key, and the other inputs that it was made of. Concurrent requests share it. */
  key?: {
    readonly resolved: readonly string[];
    readonly tags: string | undefined;
    readonly text: Promise<string>;
  };
}

/**
 * Decodes bodies of commands, and remembers the latest ones. Clones of one repository send the same bytes, and with
 * hundreds of refs decoding costs a tenth of a whole response. Equal bytes (by SHA-256) give the same objects, so that
 * callers can keep data for them.
 */
export class RequestCache {
  readonly #maxBytes: number;
  /** By digest. */
  readonly #bodies: BoundedMap<string, { readonly body: CommandBody; readonly size: number }>;
  /** First commands of bodies that are too large to be kept, by digest, for as long as some request has them. */
  readonly #inUse = new Map<string, WeakRef<EncodedCommand>>();
  readonly #bodyOf = new WeakMap<EncodedCommand, CommandBody>();
  readonly #ended = new FinalizationRegistry<string>((digest) => {
    if (this.#inUse.get(digest)?.deref() === undefined) this.#inUse.delete(digest);
  });
  /** Large bodies that are being decoded, by digest. */
  readonly #decoding = new Map<string, Promise<CommandBody>>();
  readonly #fetches = new WeakMap<CommandRequest, KnownFetch>();

  /** @param maxBytes of remembered bodies, default {@link MAX_TOTAL_BYTES} */
  constructor(maxBytes = MAX_TOTAL_BYTES) {
    this.#maxBytes = maxBytes;
    this.#bodies = new BoundedMap({ max: maxBytes, sizeOf: ({ size }) => size });
  }

  /** Bytes of the bodies that are remembered. */
  get bytes(): number {
    return this.#bodies.totalSize;
  }

  /** Decodes a small body in one go. @param bytes are not kept. @throws ProtocolError as `decodeCommandBody` */
  decode(bytes: Buffer): CommandBody {
    if (!this.#isKept(bytes)) return decodeCommandBody(bytes);
    const digest = hash("sha256", bytes, "base64");
    // A copy: the commands are views of the bytes, which belong to the connection.
    return (
      this.#bodies.get(digest)?.body ??
      this.#keep(digest, decodeCommandBody(Buffer.from(bytes)), bytes.length)
    );
  }

  /**
   * Decodes a large body, and the arguments of its fetches, in slices of a few milliseconds. Requests with equal bytes
   * share one result for as long as any of them has it: forty clones of 60,000 branches take no more memory than one.
   *
   * @param bytes the caller's to give away: the commands are views of them
   * @throws ProtocolError as `decodeCommandBody`; the reason of the signal
   */
  async decodeInSlices(bytes: Buffer, signal: AbortSignal): Promise<CommandBody> {
    const digest = await finishInSlices(digestSteps(bytes), signal);
    // Fetches are decoded one after the other, because concurrent ones would each keep their results in memory.
    for (let other = this.#decoding.get(digest); other !== undefined; other = this.#decoding.get(digest)) {
      await other.catch(() => undefined);
      signal.throwIfAborted();
    }
    const first = this.#inUse.get(digest)?.deref();
    const known =
      this.#bodies.get(digest)?.body ?? (first === undefined ? undefined : this.#bodyOf.get(first));
    if (known !== undefined) return known;
    const decoding = this.#decodeLarge(bytes, signal).finally(() => this.#decoding.delete(digest));
    this.#decoding.set(digest, decoding);
    const body = await decoding;
    if (this.#isKept(bytes)) return this.#keep(digest, body, bytes.length);
    const command = body.kind === "commands" ? body.commands[0] : undefined;
    if (command === undefined) return body;
    this.#bodyOf.set(command, body);
    this.#inUse.set(digest, new WeakRef(command));
    this.#ended.register(command, digest);
    return body;
  }

  async #decodeLarge(bytes: Buffer, signal: AbortSignal): Promise<CommandBody> {
    const body = await finishInSlices(decodeCommandBodySteps(bytes), signal);
    for (const command of body.kind === "commands" ? body.commands : []) {
      const { request } = command;
      if (request.command !== "fetch") continue;
      const format = requestObjectFormat(request) ?? "sha1";
      const fetch = await finishInSlices(decodeFetchSteps(commandArgs(command), format), signal);
      this.#fetches.set(request, decodedOf(request, fetch));
    }
    return body;
  }

  /** A `fetch`, decoded. */
  fetchOf(request: CommandRequest): DecodedFetch {
    return this.#fetch(request);
  }

  /** As {@link responseKeySteps}, of a request that names this format. */
  async keyOf(
    request: CommandRequest,
    parts: Pick<ResponseKeyParts, "format" | "resolved" | "tags">,
  ): Promise<string> {
    const known = this.#fetch(request);
    const { resolved, tags } = parts;
    let { key } = known;
    // The same list, not an equal one: concurrent requests share it, and it can have tens of thousands of lines.
    if (key === undefined || key.tags !== tags || !isSameList(key.resolved, resolved)) {
      const { capabilities } = request;
      const text = finishInSlices(responseKeySteps({ ...parts, capabilities, fetch: known.fetch }));
      key = known.key = { resolved, tags, text };
    }
    return await key.text;
  }

  #isKept(bytes: Buffer): boolean {
    return bytes.length <= Math.min(MAX_BODY_BYTES, this.#maxBytes);
  }

  #keep(digest: string, body: CommandBody, size: number): CommandBody {
    this.#bodies.set(digest, { body, size });
    return body;
  }

  #fetch(request: CommandRequest): KnownFetch {
    let known = this.#fetches.get(request);
    if (known === undefined) {
      known = decodedOf(request, decodeFetchRequest(request, requestObjectFormat(request) ?? "sha1"));
      this.#fetches.set(request, known);
    }
    return known;
  }
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one === other || (one.length === 0 && other.length === 0);
}

function decodedOf(request: CommandRequest, fetch: FetchRequest): DecodedFetch {
  return {
    fetch,
    namedFormat: requestObjectFormat(request),
    features: featuresOf(fetch),
    isStorable: isStorableRequest(fetch),
    isPlain: !request.capabilities.some((text) => /^(?:server-option|promisor-remote)(?:=|$)/.test(text)),
  };
}

/** The features of `fetch` (gitprotocol-v2) that a request uses; base ones are in every advertisement. */
function featuresOf(fetch: FetchRequest): string[] {
  const used: string[] = [];
  const isShallow =
    fetch.shallows.length > 0 ||
    fetch.deepen !== undefined ||
    fetch.deepenSince !== undefined ||
    fetch.deepenNots.length > 0;
  if (isShallow) used.push("shallow");
  if (fetch.filter !== undefined) used.push("filter");
  if (fetch.wantRefs.length > 0) used.push("ref-in-want");
  if (fetch.sidebandAll) used.push("sideband-all");
  if (fetch.waitForDone) used.push("wait-for-done");
  if (fetch.packfileUris !== undefined) used.push("packfile-uris");
  return used;
}

function* digestSteps(bytes: Buffer): Steps<string> {
  const digest = createHash("sha256");
  for (let at = 0; at < bytes.length; at += DIGEST_STEP_BYTES) {
    digest.update(bytes.subarray(at, at + DIGEST_STEP_BYTES));
    yield;
  }
  return digest.digest("base64");
}
