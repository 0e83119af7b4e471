import { isIP } from "node:net";
import { ObjectStoreError } from "./errors.ts";
import { encodeComponent, encodeKey } from "./object-key.ts";

export interface S3Location {
  readonly bucket: string;
  /** Default `us-east-1`. */
  readonly region?: string | undefined;
  /** Address of another store than AWS, without a path. */
  readonly endpoint?: string | undefined;
  /** Whether the bucket is in the path and not in the host name. Default: whether there is an endpoint. */
  readonly pathStyle?: boolean | undefined;
}

export const DEFAULT_REGION = "us-east-1";
const BUCKET_NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const REGION_NAME = /^[\w-]{1,64}$/;

/** Addresses of a bucket and its objects. */
export class S3Address {
  /** Scheme, host and port of all requests. */
  readonly origin: string;
  /** The same without the bucket, for messages. */
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  /** Path of the bucket, which ends with a slash. */
  readonly #base: string;

  /** @throws ObjectStoreError `refused`: a value is not usable */
  constructor({ bucket, region = DEFAULT_REGION, endpoint, pathStyle = endpoint !== undefined }: S3Location) {
    if (!BUCKET_NAME.test(bucket)) throw unusable("bucket", bucket, "3 to 63 of a-z, 0-9, '.' and '-'");
    if (!REGION_NAME.test(region))
      throw unusable("region", region, "letters, digits and '-', as in eu-central-1");
    const host = URL.parse(endpoint ?? `https://s3.${region}.amazonaws.com`);
    if (
      host === null ||
      !/^https?:$/.test(host.protocol) ||
      host.pathname + host.search + host.username !== "/"
    )
      throw unusable("endpoint", host?.host ?? "", "http:// or https:// with a host, without path or user");
    const name = host.hostname.replaceAll(/^\[|\]$/g, "");
    if (!pathStyle && isIP(name) !== 0)
      throw unusable("endpoint", host.host, "a host name, because the bucket is put in front of it");
    this.endpoint = host.origin;
    this.origin = pathStyle ? host.origin : `${host.protocol}//${bucket}.${host.host}`;
    this.bucket = bucket;
    this.region = region;
    this.#base = pathStyle ? `/${encodeComponent(bucket)}/` : "/";
  }

  /** @param key undefined: the bucket itself @param query in the order of their names, an empty value for a flag */
  url(key: string | undefined, query: Readonly<Record<string, string>> = {}): string {
    const path = key === undefined ? this.#base : this.#base + encodeKey(key);
    const search = Object.entries(query)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, value]) => `${encodeComponent(name)}=${encodeComponent(value)}`)
      .join("&");
    return this.origin + path + (search === "" ? "" : `?${search}`);
  }
}

function unusable(setting: string, value: string, wanted: string): ObjectStoreError {
  const message = `Cannot use ${JSON.stringify(value)} as the ${setting} of the object store: it must be ${wanted}`;
  return new ObjectStoreError("refused", message);
}
