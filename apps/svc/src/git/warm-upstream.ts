import {
  decodeCapabilityAdvertisement,
  encodeCommandRequest,
  encodeLsRefsRequest,
  type ObjectFormat,
} from "@devplat/git-protocol";
import { WarmRefused, type WarmQuestion, type WarmSource } from "../cache/warming/warm-source.ts";
import { basicToken } from "../code-host/github.ts";
import {
  mediaType,
  type HeaderRecord,
  UPLOAD_PACK_REQUEST,
  UPLOAD_PACK_RESULT,
  isUploadPackResult,
} from "../upstream/headers.ts";
import { LsRefsBodies } from "../access/ls-refs-body.ts";
import { areRefs } from "../access/ref-probe.ts";
import type { Upstream, UpstreamResponse } from "../upstream/upstream.ts";

const ADVERTISEMENT = "application/x-git-upload-pack-advertisement";
/** Bytes of a v2 advertisement that are read; real ones have a few hundred. */
const MAX_ADVERTISEMENT_BYTES = 64 * 1024;

/** Sends git requests to the code host for the service itself. */
export class WarmUpstream implements WarmSource {
  readonly #upstream: Upstream;
  readonly #basePath: string;
  readonly #userAgent: string;
  readonly #bodies = new LsRefsBodies();

  /** @param basePath the path of `host.url`, without a final slash */
  constructor(upstream: Upstream, basePath: string, userAgent: string) {
    this.#upstream = upstream;
    this.#basePath = basePath;
    this.#userAgent = userAgent;
  }

  async objectFormat(question: WarmQuestion): Promise<ObjectFormat> {
    const response = await this.#send(question, "GET", "info/refs?service=git-upload-pack");
    const body = await response.read(MAX_ADVERTISEMENT_BYTES);
    if (response.status !== 200 || mediaType(response.headers["content-type"]) !== ADVERTISEMENT) {
      throw this.#refused(response, "the repository");
    }
    const format = decodeCapabilityAdvertisement(body).capabilities.get("object-format") ?? "sha1";
    if (format === "sha1" || format === "sha256") return format;
    throw new WarmRefused(`${this.#upstream.name} stores objects in a format that is not known here`);
  }

  async lsRefs(
    question: WarmQuestion,
    format: ObjectFormat,
    prefixes: readonly string[],
  ): Promise<Buffer | undefined> {
    const request = encodeLsRefsRequest(
      { symrefs: false, peel: true, unborn: false, refPrefixes: prefixes, unknown: [] },
      [`agent=${this.#userAgent}`, `object-format=${format}`],
    );
    const response = await this.#send(question, "POST", "git-upload-pack", encodeCommandRequest(request));
    if (!isUploadPackResult(response)) throw this.#refused(response, "its references");
    const body = this.#bodies.begin(`${question.owner}/${question.name}`);
    try {
      for await (const chunk of response.chunks) body.push(chunk);
      const { bytes } = body;
      if (body.isWhole && areRefs(bytes)) return bytes;
    } finally {
      body.leave();
    }
    throw new WarmRefused(`${this.#upstream.name} gave no list of references`);
  }

  async fetch(question: WarmQuestion, body: Buffer): Promise<AsyncIterable<Buffer>> {
    const response = await this.#send(question, "POST", "git-upload-pack", body);
    if (!isUploadPackResult(response)) throw this.#refused(response, "its objects");
    return response.chunks;
  }

  async #send(
    { owner, name, token, idleMs, signal }: WarmQuestion,
    method: "GET" | "POST",
    tail: string,
    body?: Buffer,
  ): Promise<UpstreamResponse> {
    const headers: HeaderRecord = {
      accept: method === "GET" ? "*/*" : UPLOAD_PACK_RESULT,
      "accept-encoding": "identity",
      "git-protocol": "version=2",
      "user-agent": this.#userAgent,
      authorization: basicToken(token).reveal(),
      ...(body === undefined ? {} : { "content-type": UPLOAD_PACK_REQUEST }),
    };
    return await this.#upstream.send({
      kind: "warm",
      method,
      path: `${this.#basePath}/${encodeURIComponent(owner)}/${encodeURIComponent(name)}.git/${tail}`,
      headers,
      ...(body === undefined ? {} : { body }),
      idleMs,
      signal,
    });
  }

  #refused(response: UpstreamResponse, what: string): WarmRefused {
    response.cancel();
    return new WarmRefused(
      `${this.#upstream.name} answered ${response.status} when the warming token asked for ${what}`,
    );
  }
}
