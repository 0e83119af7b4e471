import { xmlText } from "@devplat/base/xml-text";
import { hash } from "node:crypto";
import { ObjectStoreError } from "./errors.ts";
import {
  PART_BYTES,
  FileSource,
  uploadInParts,
  type SentPart,
  type UploadPart,
} from "./uploads/multipart-upload.ts";
import { ObjectBody, checkedBody } from "./object-body.ts";
import { checkKey } from "./object-key.ts";
import type {
  ByteRange,
  CallOptions,
  GetOptions,
  GetResult,
  ListedObject,
  ListOptions,
  ObjectInfo,
  ObjectSource,
  ObjectStore,
  OpenUpload,
  Page,
  PutLargeOptions,
  PutOptions,
  Traffic,
  WriteCondition,
  Written,
} from "./object-store.ts";
import {
  readCompletion,
  readContentRange,
  readCount,
  readEtag,
  readHttpDate,
  readObjectInfo,
  readObjectPage,
  readUploadId,
  readUploadMarkers,
  readUploadPage,
  single,
} from "./responses.ts";
import { faultOfResponse, faultOfTransport } from "./s3-faults.ts";
import type { S3Call, S3Requests, S3Response } from "./s3-requests.ts";
import { UploadBodies } from "./uploads/upload-bodies.ts";

/** Encryption at rest by the store. `kms` with a key id, or with the default key of the account. */
export type ServerSideEncryption =
  | { readonly mode: "sse-s3" }
  | { readonly mode: "sse-kms"; readonly keyId?: string };

export interface S3ObjectStoreOptions {
  /** Milliseconds to the first byte of a read, over all its tries. Default 2000. */
  readonly timeoutMs?: number;
  /** Parts in transfer, of all uploads. Each takes a buffer. Default 4. */
  readonly uploadParallel?: number;
  /** Bytes of one part, at least 5 MiB. Smaller files are written by one request. Default 8 MiB. */
  readonly partBytes?: number;
  /** Default: as the bucket is set. */
  readonly encryption?: ServerSideEncryption;
}

const TIMEOUT_MS = 2000;
const UPLOAD_PARALLEL = 4;
/** Writes and lists wait for disks and for other requests. Nobody waits for them. */
const WRITE_LIMIT_FACTOR = 5;
/** Slowest transfer that a write allows for, in bytes per millisecond: 256 KiB a second. */
const SLOWEST_BYTES_PER_MS = 256;
/** Milliseconds of a completion, for which some stores copy all parts. */
const COMPLETION_LIMIT_MS = 120_000;
const MAX_PAGE = 1000;
const PARTIAL_CONTENT = 206;
const NOT_MODIFIED = 304;

/** {@link ObjectStore} over the S3 protocol. */
export class S3ObjectStore implements ObjectStore {
  readonly #requests: S3Requests;
  readonly #closeConnections: () => Promise<void>;
  readonly #timeoutMs: number;
  readonly #parallel: number;
  readonly #partBytes: number;
  readonly #bodies: UploadBodies;
  readonly #encryption: Readonly<Record<string, string>>;

  constructor(
    requests: S3Requests,
    connections: { close(): Promise<void> },
    options: S3ObjectStoreOptions = {},
  ) {
    this.#requests = requests;
    this.#closeConnections = () => connections.close();
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#parallel = options.uploadParallel ?? UPLOAD_PARALLEL;
    this.#partBytes = options.partBytes ?? PART_BYTES;
    this.#bodies = new UploadBodies(this.#parallel, this.#partBytes);
    this.#encryption = encryptionHeaders(options.encryption);
  }

  async get(key: string, options: GetOptions = {}): Promise<GetResult> {
    checkKey(key);
    const { range, ifNoneMatch, ifMatch, sha256, traffic = "bulk", signal } = options;
    const call: S3Call = {
      action: `read the object ${JSON.stringify(key)}`,
      permission: "s3:GetObject",
      repeatable: true,
      method: "GET",
      key,
      headers: {
        ...(range !== undefined && { range: `bytes=${range.first}-${range.first + range.length - 1}` }),
        ...(ifNoneMatch !== undefined && { "if-none-match": ifNoneMatch }),
        ...(ifMatch !== undefined && { "if-match": ifMatch }),
      },
      traffic,
      limitMs: this.#timeoutMs,
      signal,
    };
    const response = await this.#requests.send(call);
    try {
      if (response.status === NOT_MODIFIED && ifNoneMatch !== undefined) {
        await response.body.resume().toArray();
        return { modified: false, etag: ifNoneMatch };
      }
      const { info, bodyLength } = describe(response, range, key);
      const body = new ObjectBody(key, bodyLength, range === undefined ? sha256 : undefined);
      const toFault = (error: unknown): unknown =>
        signal?.aborted === true
          ? signal.reason
          : faultOfTransport(this.#requests.address, call, error, true);
      return { ...info, modified: true, bodyLength, body: checkedBody(response.body, body, toFault) };
    } catch (error) {
      response.body.on("error", () => undefined).destroy();
      throw error;
    }
  }

  async head(key: string, { signal }: CallOptions = {}): Promise<ObjectInfo> {
    checkKey(key);
    const { headers } = await this.#requests.sendForText({
      action: `read the object ${JSON.stringify(key)}`,
      permission: "s3:GetObject",
      repeatable: true,
      method: "HEAD",
      key,
      traffic: "control",
      limitMs: this.#timeoutMs,
      signal,
    });
    return readObjectInfo(headers);
  }

  async put(key: string, bytes: Uint8Array, options: PutOptions = {}): Promise<Written> {
    checkKey(key);
    const call = { ...this.#putCall(key, bytes.length, options), ...payloadOf(bytes) };
    const { headers } = await this.#requests.sendForText(call);
    return { etag: readEtag(headers) };
  }

  #putCall(key: string, length: number, { condition, traffic = "control", signal }: PutOptions): S3Call {
    return {
      ...writing(key, condition),
      method: "PUT",
      key,
      headers: { ...conditionHeaders(condition), ...this.#encryption, "content-type": CONTENT_TYPE },
      traffic,
      limitMs: this.#writeLimit(length),
      signal,
    };
  }

  async putLarge(
    key: string,
    source: string | ObjectSource,
    options: PutLargeOptions = {},
  ): Promise<Written & { readonly length: number }> {
    checkKey(key);
    if (typeof source !== "string") return await this.#putFrom(key, source, options);
    const file = await FileSource.open(source);
    try {
      return await this.#putFrom(key, file, options);
    } finally {
      await file.close();
    }
  }

  async #putFrom(
    key: string,
    source: ObjectSource,
    options: PutLargeOptions,
  ): Promise<Written & { readonly length: number }> {
    const { condition, traffic = "bulk", signal, alwaysInParts = false } = options;
    const { length } = source;
    // An upload without a part cannot be completed.
    if (length === 0 || (length <= this.#partBytes && !alwaysInParts)) {
      const { headers } = await this.#bodies.send(source, { position: 0, length }, signal, async (body) => {
        await source.checkUnchanged?.();
        return await this.#requests.sendForText({
          ...this.#putCall(key, length, { ...options, traffic }),
          ...body,
        });
      });
      return { etag: readEtag(headers), length };
    }
    const requests = {
      create: () => this.#createUpload(key, signal),
      sendPart: (uploadId: string, part: UploadPart, ended: AbortSignal) =>
        this.#sendPart(key, uploadId, source, part, traffic, ended),
      complete: (uploadId: string, parts: readonly SentPart[]) =>
        this.#completeUpload(key, uploadId, parts, condition, signal),
      // The caller's signal may have ended the upload; its parts go all the same.
      abort: (uploadId: string) => this.abortUpload({ key, uploadId }),
    };
    const written = await uploadInParts(source, requests, {
      condition,
      parallel: this.#parallel,
      partBytes: this.#partBytes,
      signal,
    });
    return { ...written, length };
  }

  async delete(key: string, options: CallOptions & { readonly ifMatch?: string } = {}): Promise<void> {
    checkKey(key);
    const { ifMatch, signal } = options;
    const call: S3Call = {
      action: `delete the object ${JSON.stringify(key)}`,
      permission: "s3:DeleteObject",
      // The second of two deletes finds nothing, or an object that another writer put there since.
      repeatable: true,
      method: "DELETE",
      key,
      ...(ifMatch !== undefined && { headers: { "if-match": ifMatch } }),
      traffic: "control",
      limitMs: this.#writeLimit(0),
      signal,
    };
    await ignoreMissing(this.#requests.sendForText(call));
  }

  async list(prefix: string, options: ListOptions = {}): Promise<Page<ListedObject>> {
    const { limit = MAX_PAGE, from, signal } = options;
    const { text } = await this.#requests.sendForText({
      ...listing(prefix, "s3:ListBucket"),
      query: {
        "list-type": "2",
        prefix,
        "max-keys": String(limit),
        "encoding-type": "url",
        ...(from !== undefined && { "continuation-token": from }),
      },
      limitMs: this.#writeLimit(0),
      signal,
    });
    return readObjectPage(text);
  }

  async listUploads(prefix: string, options: ListOptions = {}): Promise<Page<OpenUpload>> {
    const { limit = MAX_PAGE, from, signal } = options;
    const [keyMarker, idMarker] = from === undefined ? [] : readUploadMarkers(from);
    const { text } = await this.#requests.sendForText({
      ...listing(prefix, "s3:ListBucketMultipartUploads"),
      query: {
        uploads: "",
        prefix,
        "max-uploads": String(limit),
        "encoding-type": "url",
        ...(keyMarker !== undefined && { "key-marker": keyMarker }),
        ...(idMarker !== undefined && idMarker !== "" && { "upload-id-marker": idMarker }),
      },
      limitMs: this.#writeLimit(0),
      signal,
    });
    return readUploadPage(text);
  }

  async abortUpload(
    { key, uploadId }: Pick<OpenUpload, "key" | "uploadId">,
    { signal }: CallOptions = {},
  ): Promise<void> {
    const call: S3Call = {
      action: `abort an upload of the object ${JSON.stringify(key)}`,
      permission: "s3:AbortMultipartUpload",
      repeatable: true,
      method: "DELETE",
      key,
      query: { uploadId },
      traffic: "control",
      limitMs: this.#writeLimit(0),
      signal,
    };
    await ignoreMissing(this.#requests.sendForText(call));
  }

  now(): number {
    return this.#requests.storeClock.now();
  }

  async close(): Promise<void> {
    await this.#closeConnections();
  }

  async #createUpload(key: string, signal: AbortSignal | undefined): Promise<string> {
    const { text } = await this.#requests.sendForText({
      ...writing(key, undefined),
      // A second one would leave the first behind.
      repeatable: false,
      method: "POST",
      key,
      query: { uploads: "" },
      headers: { ...this.#encryption, "content-type": CONTENT_TYPE },
      traffic: "control",
      limitMs: this.#writeLimit(0),
      signal,
    });
    return readUploadId(text);
  }

  async #sendPart(
    key: string,
    uploadId: string,
    source: ObjectSource,
    part: UploadPart,
    traffic: Traffic,
    signal: AbortSignal,
  ): Promise<string> {
    const { headers } = await this.#bodies.send(source, part, signal, async (body) =>
      this.#requests.sendForText({
        ...writing(key, undefined),
        method: "PUT",
        key,
        query: { partNumber: String(part.number), uploadId },
        ...body,
        traffic,
        limitMs: this.#writeLimit(part.length),
        signal,
      }),
    );
    return readEtag(headers);
  }

  async #completeUpload(
    key: string,
    uploadId: string,
    parts: readonly SentPart[],
    condition: WriteCondition | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Written> {
    const entries = parts.map(
      ({ number, etag }) => `<Part><PartNumber>${number}</PartNumber><ETag>${xmlText(etag)}</ETag></Part>`,
    );
    const document = `<CompleteMultipartUpload xmlns="${NAMESPACE}">${entries.join("")}</CompleteMultipartUpload>`;
    const call: S3Call = {
      ...writing(key, condition),
      // The second of two completions does not find the upload.
      repeatable: false,
      method: "POST",
      key,
      query: { uploadId },
      headers: { ...conditionHeaders(condition), "content-type": "application/xml" },
      ...payloadOf(Buffer.from(document)),
      traffic: "control",
      limitMs: COMPLETION_LIMIT_MS,
      signal,
    };
    const { text, headers } = await this.#requests.sendForText(call);
    let result;
    try {
      result = readCompletion(text);
    } catch (cause) {
      throw new ObjectStoreError("damaged", `Cannot ${call.action}: the completion is not readable`, {
        cause,
        outcomeUnknown: true,
      });
    }
    if ("etag" in result) return result;
    const status = result.fault.code === "PreconditionFailed" ? 412 : 500;
    throw faultOfResponse(this.#requests.address, call, status, headers, result.fault);
  }

  #writeLimit(bytes: number): number {
    return this.#timeoutMs * WRITE_LIMIT_FACTOR + bytes / SLOWEST_BYTES_PER_MS;
  }
}

const CONTENT_TYPE = "application/octet-stream";
const NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/";

type Described = Pick<S3Call, "action" | "permission" | "repeatable" | "conditional">;

function writing(key: string, condition: WriteCondition | undefined): Described {
  return {
    action: `write the object ${JSON.stringify(key)}`,
    permission: "s3:PutObject",
    repeatable: condition === undefined,
    conditional: condition !== undefined,
  };
}

function listing(prefix: string, permission: string): Described & Pick<S3Call, "method" | "traffic"> {
  const action = `list the objects below ${JSON.stringify(prefix)}`;
  return { action, permission, repeatable: true, method: "GET", traffic: "control" };
}

/** Length and revision of what a response holds. @throws ObjectStoreError `damaged` */
function describe(
  { status, headers }: S3Response,
  range: ByteRange | undefined,
  key: string,
): { readonly info: ObjectInfo; readonly bodyLength: number } {
  const bodyLength = readCount(single(headers, "content-length"));
  if (range === undefined) return { info: readObjectInfo(headers), bodyLength };
  const wrong = (reason: string): ObjectStoreError =>
    new ObjectStoreError("damaged", `Cannot read the object ${JSON.stringify(key)}: ${reason}`);
  if (status !== PARTIAL_CONTENT) throw wrong("the store ignores the range");
  const { first, last, total } = readContentRange(headers);
  const wanted = Math.min(range.first + range.length, total) - 1;
  if (first !== range.first || last !== wanted || bodyLength !== last - first + 1)
    throw wrong("the store sends another range");
  const lastModified = readHttpDate(single(headers, "last-modified"));
  return { info: { etag: readEtag(headers), length: total, lastModified }, bodyLength };
}

function conditionHeaders(condition: WriteCondition | undefined): Readonly<Record<string, string>> {
  if (condition === undefined) return {};
  return "ifMatch" in condition ? { "if-match": condition.ifMatch } : { "if-none-match": "*" };
}

function encryptionHeaders(encryption: ServerSideEncryption | undefined): Readonly<Record<string, string>> {
  if (encryption === undefined) return {};
  if (encryption.mode === "sse-s3") return { "x-amz-server-side-encryption": "AES256" };
  return {
    "x-amz-server-side-encryption": "aws:kms",
    ...(encryption.keyId !== undefined && {
      "x-amz-server-side-encryption-aws-kms-key-id": encryption.keyId,
    }),
  };
}

function payloadOf(body: Uint8Array): { body: Uint8Array; payloadSha256: string } {
  return { body, payloadSha256: hash("sha256", body, "hex") };
}

async function ignoreMissing(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof ObjectStoreError && error.code === "missing")) throw error;
  }
}
