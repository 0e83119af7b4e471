import {
  LsRefsFraming,
  ProtocolError,
  decodeLsRefsResponse,
  encodeCommandRequest,
  encodeLsRefsRequest,
} from "@devplat/git-protocol";
import { MAX_TIPS_BYTES } from "../cache/tips.ts";
import { mediaType } from "./headers.ts";
import type { Upstream, UpstreamAnswer } from "./upstream.ts";

export const UPLOAD_PACK_REQUEST = "application/x-git-upload-pack-request";
export const UPLOAD_PACK_RESULT = "application/x-git-upload-pack-result";

/** Bytes of a refusal's body that are passed on. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** An `ls-refs` of our own, with the caller's credential. */
export interface RefQuestion {
  /** Two questions with the same text here, at the same time, are one. Must tell credentials apart. */
  readonly shareKey: string;
  /** Path of `git-upload-pack` at the code host. */
  readonly path: string;
  readonly authorization: string | undefined;
  /** `object-format` and `server-option` of the fetch. */
  readonly capabilities: readonly string[];
  readonly prefixes: readonly string[];
  readonly idleMs: number;
}

/**
 * What the code host said.
 * - `yes`: status 200, the right content type, a body that parses to its flush-pkt without `ERR`; `body` is all of it,
 *   or undefined if it is too long to keep.
 * - `no`: anything else that is an answer; its body is in memory and may be read by all who asked.
 */
export type RefAnswer =
  | { readonly kind: "yes"; readonly body: Buffer | undefined }
  | { readonly kind: "no"; readonly answer: UpstreamAnswer };

/** Asks the code host for refs on a fetch's behalf. Concurrent questions with one key share one call. */
export class RefQuestions {
  readonly #upstream: Upstream;
  readonly #userAgent: string;
  readonly #asked = new Map<string, Promise<RefAnswer>>();

  constructor(options: { readonly upstream: Upstream; readonly userAgent: string }) {
    this.#upstream = options.upstream;
    this.#userAgent = options.userAgent;
  }

  /** @throws GitError if no answer came */
  async ask(question: RefQuestion): Promise<RefAnswer> {
    const key = JSON.stringify([question.shareKey, question.capabilities, question.prefixes]);
    const asked = this.#asked.get(key);
    if (asked !== undefined) return await asked;
    const asking = this.#send(question).finally(() => this.#asked.delete(key));
    this.#asked.set(key, asking);
    return await asking;
  }

  async #send(question: RefQuestion): Promise<RefAnswer> {
    const request = encodeLsRefsRequest(
      { symrefs: false, peel: true, unborn: false, refPrefixes: question.prefixes, unknown: [] },
      [`agent=${this.#userAgent}`, ...question.capabilities],
    );
    const answer = await this.#upstream.send({
      kind: "probe",
      method: "POST",
      path: question.path,
      headers: {
        "content-type": UPLOAD_PACK_REQUEST,
        accept: UPLOAD_PACK_RESULT,
        "accept-encoding": "identity",
        "git-protocol": "version=2",
        "user-agent": this.#userAgent,
        ...(question.authorization === undefined ? {} : { authorization: question.authorization }),
      },
      body: encodeCommandRequest(request),
      idleMs: question.idleMs,
    });
    if (!isUploadPackResult(answer))
      return { kind: "no", answer: kept(answer, await answer.read(MAX_REFUSAL_BYTES)) };
    const body = new YesBody();
    for await (const chunk of answer.chunks) body.push(chunk);
    if (body.isYes && areRefs(body.bytes)) return { kind: "yes", body: body.bytes };
    return {
      kind: "no",
      answer: kept(answer, body.bytes?.subarray(0, MAX_REFUSAL_BYTES) ?? Buffer.alloc(0)),
    };
  }
}

/** Whether an answer's head is that of an upload-pack result whose bytes we can read. */
export function isUploadPackResult(answer: UpstreamAnswer): boolean {
  const encoding = answer.headers["content-encoding"];
  return (
    answer.status === 200 &&
    mediaType(answer.headers["content-type"]) === UPLOAD_PACK_RESULT &&
    (encoding === undefined || encoding === "identity")
  );
}

/** Whether the lines are refs; a body that was too long to keep is taken by its framing. */
export function areRefs(body: Buffer | undefined): boolean {
  try {
    if (body !== undefined) decodeLsRefsResponse(body);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}

/** An answer whose body was read, so that several callers can be given it. */
export function kept(answer: UpstreamAnswer, body: Buffer): UpstreamAnswer {
  return {
    status: answer.status,
    headers: { ...answer.headers, "content-length": String(body.length) },
    chunks: {
      async *[Symbol.asyncIterator]() {
        yield body;
      },
    },
    cancel: () => undefined,
    read: () => Promise.resolve(body),
  };
}

/** Follows the body of an `ls-refs` answer: whether it is a yes, and its bytes, while they are few enough to keep. */
export class YesBody {
  readonly #framing = new LsRefsFraming();
  #foreign = false;
  #size = 0;
  #parts: Buffer[] | undefined = [];

  push(chunk: Buffer): void {
    if (this.#foreign) return;
    try {
      this.#framing.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#foreign = true;
    }
    this.#size += chunk.length;
    if (this.#size > MAX_TIPS_BYTES) this.#parts = undefined;
    else this.#parts?.push(chunk);
  }

  /** After the last chunk: whether the body parses to its flush-pkt, without `ERR` and with nothing after it. */
  get isYes(): boolean {
    return !this.#foreign && this.#framing.complete;
  }

  get bytes(): Buffer | undefined {
    return this.#parts === undefined ? undefined : Buffer.concat(this.#parts);
  }
}
