import { hash } from "node:crypto";
import {
  decodeCommandBody,
  decodeFetchRequest,
  type CommandBody,
  type CommandRequest,
  type FetchRequest,
  type ObjectFormat,
} from "@devplat/git-protocol";
import { responseKey, type ResponseKeyParts } from "../cache/response-key.ts";

/** Bytes of a body that is remembered, at most: some 20,000 wants. */
const MAX_BODY_BYTES = 1024 * 1024;
/** Bytes of all remembered bodies together. Decoded they take about three times as much. */
const MAX_TOTAL_BYTES = 4 * 1024 * 1024;

interface KnownFetch {
  readonly fetch: FetchRequest;
  /** The last response key, and what beside the request it was made of. */
  key?: { readonly beside: string; readonly text: string };
}

/**
 * Decodes bodies of commands, and remembers what the latest ones mean: clones of one repository send the same bytes, and
 * with hundreds of refs reading them anew costs a tenth of a whole answer. Equal bytes (by SHA-256) give the very same
 * objects, so that whoever keeps something beside them finds it again.
 */
export class KnownBodies {
  readonly #maxBytes: number;
  /** By digest, in the order of use, oldest first. */
  readonly #bodies = new Map<string, { readonly body: CommandBody; readonly size: number }>();
  readonly #fetches = new WeakMap<CommandRequest, KnownFetch>();
  #total = 0;

  /** @param maxBytes of remembered bodies, default {@link MAX_TOTAL_BYTES} */
  constructor(maxBytes = MAX_TOTAL_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of the bodies that are remembered. */
  get bytes(): number {
    return this.#total;
  }

  /** @param bytes are not kept. @throws ProtocolError as `decodeCommandBody` */
  decode(bytes: Buffer): CommandBody {
    if (bytes.length > Math.min(MAX_BODY_BYTES, this.#maxBytes)) return decodeCommandBody(bytes);
    const digest = hash("sha256", bytes, "base64");
    const known = this.#bodies.get(digest);
    if (known !== undefined) {
      this.#bodies.delete(digest);
      this.#bodies.set(digest, known);
      return known.body;
    }
    // A copy: the bytes are a part of what the connection read, and the commands are views of them.
    const body = decodeCommandBody(Buffer.from(bytes));
    this.#bodies.set(digest, { body, size: bytes.length });
    this.#total += bytes.length;
    for (const [oldest, { size }] of this.#bodies) {
      if (this.#total <= this.#maxBytes) break;
      this.#bodies.delete(oldest);
      this.#total -= size;
    }
    return body;
  }

  /** The arguments of a `fetch`. @param format the one that the request names, or what stands for it */
  fetchOf(request: CommandRequest, format: ObjectFormat): FetchRequest {
    return this.#fetch(request, format).fetch;
  }

  /** As {@link responseKey}, of a request that names this format. */
  keyOf(request: CommandRequest, parts: Pick<ResponseKeyParts, "format" | "resolved" | "tags">): string {
    const known = this.#fetch(request, parts.format);
    const beside = JSON.stringify([parts.resolved, parts.tags]);
    if (known.key?.beside !== beside) {
      const { capabilities } = request;
      known.key = { beside, text: responseKey({ ...parts, capabilities, fetch: known.fetch }) };
    }
    return known.key.text;
  }

  #fetch(request: CommandRequest, format: ObjectFormat): KnownFetch {
    let known = this.#fetches.get(request);
    if (known === undefined) {
      known = { fetch: decodeFetchRequest(request, format) };
      this.#fetches.set(request, known);
    }
    return known;
  }
}
