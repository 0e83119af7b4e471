import type { IncomingHttpHeaders } from "node:http";
import type { ResponseFlow, ResponseSink } from "./api-upstream.ts";

/** Bytes of a response that is read whole; a repository takes 10 KB. */
const MAX_BYTES = 1024 * 1024;

/**
 * Removes fields from a response that is a JSON object, and passes it to another sink. The response is read completely, and
 * dropped if it cannot be parsed. Redirects, errors and responses without a body pass unchanged.
 */
export class WithheldFields implements ResponseSink {
  readonly #inner: ResponseSink;
  readonly #isWithheld: (field: string) => boolean;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #held: { readonly status: number; readonly headers: IncomingHttpHeaders } | undefined;
  /** Whether a response could not be parsed. The inner sink then got nothing. */
  unreadable = false;

  constructor(inner: ResponseSink, isWithheld: (field: string) => boolean) {
    this.#inner = inner;
    this.#isWithheld = isWithheld;
  }

  head(status: number, headers: IncomingHttpHeaders): boolean {
    if (status < 200 || status >= 300 || status === 204) return this.#inner.head(status, headers);
    const encoding = headers["content-encoding"];
    this.unreadable = encoding !== undefined && encoding.toLowerCase() !== "identity";
    this.#held = { status, headers };
    return !this.unreadable;
  }

  data(chunk: Buffer, flow: ResponseFlow): boolean {
    if (this.#held === undefined) return this.#inner.data(chunk, flow);
    this.#size += chunk.length;
    if (this.#size <= MAX_BYTES) this.#chunks.push(chunk);
    return true;
  }

  end(): void {
    if (this.#held === undefined) {
      this.#inner.end();
      return;
    }
    const { "content-length": _, ...headers } = this.#held.headers;
    const body =
      this.#size > MAX_BYTES ? undefined : withoutFields(Buffer.concat(this.#chunks), this.#isWithheld);
    if (body === undefined) this.unreadable = true;
    else if (this.#inner.head(this.#held.status, headers)) {
      this.#inner.data(body, { resume: () => undefined });
      this.#inner.end();
    }
  }
}

/** Undefined: the body is not a JSON object. A response to HEAD has no body. */
function withoutFields(body: Buffer, isWithheld: (field: string) => boolean): Buffer | undefined {
  if (body.length === 0) return body;
  try {
    const parsed: unknown = JSON.parse(body.toString("utf8"));
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return undefined;
    const kept = Object.entries(parsed).filter(([name]) => !isWithheld(name));
    return kept.length === Object.keys(parsed).length
      ? body
      : Buffer.from(JSON.stringify(Object.fromEntries(kept)));
  } catch {
    return undefined;
  }
}
