import { createHmac } from "node:crypto";
import { AwsV4Signer } from "aws4fetch";
import type { Credentials } from "./credentials.ts";

/** Hash of an empty payload, in hex. */
export const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** Beginning of a chain of signatures: those of the request. */
export interface ChunkSeed {
  /** Key of SigV4 for this day, region and service. */
  readonly key: Buffer;
  /** Such as `20261124T060000Z`. */
  readonly date: string;
  /** Such as `20261124/us-east-1/s3/aws4_request`. */
  readonly scope: string;
  /** Signature of the request, in hex. */
  readonly signature: string;
}

export interface RequestToSign {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Absolute and percent-encoded, with its query. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body in hex. The store compares it with the bytes that it gets. */
  readonly payloadSha256: string;
}

/**
 * Signs requests with Signature Version 4. The payload is always signed, so that the store finds damaged bodies, also on plain
 * http and also if it knows no checksum headers.
 */
export class RequestSigner {
  readonly #region: string;
  /** Signing keys of the library: one a day for each pair of credentials. */
  #keys = new Map<string, ArrayBuffer>();
  #keysOf = "";

  constructor(region: string) {
    this.#region = region;
  }

  /** @param at milliseconds since the epoch by the store's clock @returns all headers to send except `host` */
  async sign(request: RequestToSign, credentials: Credentials, at: number): Promise<Record<string, string>> {
    const day = new Date(at).toISOString().slice(0, 10);
    const keysOf = `${day} ${credentials.accessKeyId}`;
    if (keysOf !== this.#keysOf) {
      this.#keys = new Map();
      this.#keysOf = keysOf;
    }
    const signer = new AwsV4Signer({
      method: request.method,
      url: request.url,
      headers: { ...request.headers, "x-amz-content-sha256": request.payloadSha256 },
      accessKeyId: credentials.accessKeyId,
      secretAccessKey: credentials.secretAccessKey.reveal(),
      ...(credentials.sessionToken !== undefined && { sessionToken: credentials.sessionToken.reveal() }),
      service: "s3",
      region: this.#region,
      cache: this.#keys,
      datetime: new Date(at).toISOString().replaceAll(/[:-]|\.\d{3}/g, ""),
    });
    const { headers } = await signer.sign();
    return Object.fromEntries(headers);
  }

  /** The beginning of the signatures of chunks, for a request that has these headers. */
  chunkSeed(headers: Readonly<Record<string, string>>, credentials: Credentials): ChunkSeed {
    const { authorization = "", "x-amz-date": date = "" } = headers;
    const [, signature = ""] = /Signature=([0-9a-f]{64})/.exec(authorization) ?? [];
    const day = date.slice(0, 8);
    const secret: string | Buffer = `AWS4${credentials.secretAccessKey.reveal()}`;
    const parts = [day, this.#region, "s3", "aws4_request"];
    const key = parts.reduce<string | Buffer>(
      (from, part) => createHmac("sha256", from).update(part).digest(),
      secret,
    );
    return { key: Buffer.from(key), date, scope: parts.join("/"), signature };
  }
}
