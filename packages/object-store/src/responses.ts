import type { ListedObject, ObjectInfo, OpenUpload, Page } from "./object-store.ts";
import { damagedXml, readXml, type XmlElement } from "./xml-document.ts";

/** Headers of a response, with names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Error document of the store, or of a proxy in front of it. */
export interface StoreFault {
  /** Such as `NoSuchKey`; undefined if the body is not an error document. */
  readonly code: string | undefined;
  /** Region of the bucket, where the store names it. */
  readonly region: string | undefined;
}

/** Reads the body of a failed response. It never fails: proxies send anything. */
export function readFault(body: string): StoreFault {
  try {
    return faultOf(readXml(body, "Error", "ErrorResponse"));
  } catch {
    return { code: undefined, region: undefined };
  }
}

function faultOf(root: XmlElement): StoreFault {
  const error = root.name === "ErrorResponse" ? (root.children("Error")[0] ?? root) : root;
  const code = error.text("Code");
  const region = error.text("Region");
  return {
    code: code !== undefined && /^\w{1,64}$/.test(code) ? code : undefined,
    region: region !== undefined && /^[\w-]{1,64}$/.test(region) ? region : undefined,
  };
}

/** Page of ListObjectsV2. @throws ObjectStoreError `damaged` */
export function readObjectPage(body: string): Page<ListedObject> {
  const root = readXml(body, "ListBucketResult");
  const decode = decoderOf(root);
  const entries = root.children("Contents").map((entry) => ({
    key: decode(entry.required("Key")),
    etag: quoted(entry.required("ETag")),
    length: readCount(entry.required("Size")),
    lastModified: readIsoDate(entry.text("LastModified")),
  }));
  return { entries, next: isTruncated(root) ? root.required("NextContinuationToken") : undefined };
}

/** Page of ListMultipartUploads; `next` holds both markers. @throws ObjectStoreError `damaged` */
export function readUploadPage(body: string): Page<OpenUpload> {
  const root = readXml(body, "ListMultipartUploadsResult");
  const decode = decoderOf(root);
  const entries = root.children("Upload").map((entry) => ({
    key: decode(entry.required("Key")),
    uploadId: entry.required("UploadId"),
    startedAt: readIsoDate(entry.text("Initiated")),
  }));
  if (!isTruncated(root)) return { entries, next: undefined };
  const marker = root.text("NextKeyMarker") ?? "";
  // MinIO gives only the marker of the upload.
  const key = marker === "" ? entries.at(-1)?.key : decode(marker);
  if (key === undefined) throw damagedXml("<ListMultipartUploadsResult> has no <NextKeyMarker>");
  const markers = [key, root.text("NextUploadIdMarker") ?? ""];
  return { entries, next: JSON.stringify(markers) };
}

/** Reads `next` of {@link readUploadPage}: marker of the name, marker of the upload. @throws ObjectStoreError `damaged` */
export function readUploadMarkers(next: string): readonly [key: string, uploadId: string] {
  let value: unknown;
  try {
    value = JSON.parse(next);
  } catch {
    value = undefined;
  }
  const [key, uploadId, ...more] = Array.isArray(value) ? (value as unknown[]) : [];
  if (typeof key === "string" && typeof uploadId === "string" && more.length === 0) return [key, uploadId];
  throw damagedXml("the place in the list of uploads is not one that a page gave");
}

/** Id of a new multipart upload. @throws ObjectStoreError `damaged` */
export function readUploadId(body: string): string {
  return readXml(body, "InitiateMultipartUploadResult").required("UploadId");
}

/** A completion may be a failure although its status is 200. @throws ObjectStoreError `damaged` */
export function readCompletion(body: string): { readonly etag: string } | { readonly fault: StoreFault } {
  const root = readXml(body, "CompleteMultipartUploadResult", "Error", "ErrorResponse");
  if (root.name !== "CompleteMultipartUploadResult") return { fault: faultOf(root) };
  return { etag: quoted(root.required("ETag")) };
}

/** ETag, length of the whole object, and time. @throws ObjectStoreError `damaged` */
export function readObjectInfo(headers: ResponseHeaders): ObjectInfo {
  return {
    etag: readEtag(headers),
    length: readCount(single(headers, "content-length")),
    lastModified: readHttpDate(single(headers, "last-modified")),
  };
}

/** @throws ObjectStoreError `damaged` */
export function readEtag(headers: ResponseHeaders): string {
  const etag = single(headers, "etag");
  if (etag === undefined || etag === "") throw damagedXml("it has no ETag");
  return quoted(etag);
}

/** `Content-Range` of a response with a part. @throws ObjectStoreError `damaged` */
export function readContentRange(headers: ResponseHeaders): {
  readonly first: number;
  readonly last: number;
  readonly total: number;
} {
  const found = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(single(headers, "content-range") ?? "");
  if (found === null) throw damagedXml("its Content-Range is not one");
  const [first = 0, last = 0, total = 0] = found.slice(1).map(Number);
  if (first > last || last >= total) throw damagedXml("its Content-Range is not one");
  return { first, last, total };
}

/** Date of HTTP, in milliseconds since the epoch; undefined if it is missing or not one. */
export function readHttpDate(text: string | undefined): number | undefined {
  // Date.parse reads much more than the one form that HTTP allows to send.
  if (text === undefined || !/^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** The value of a header that has one. @throws ObjectStoreError `damaged`: it has several */
export function single(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name];
  if (Array.isArray(value)) throw damagedXml(`it has more than one ${name}`);
  return value;
}

/** Number of bytes. @throws ObjectStoreError `damaged` */
export function readCount(text: string | undefined): number {
  if (text === undefined || !/^\d{1,15}$/.test(text)) throw damagedXml("a length is not a number");
  return Number(text);
}

function readIsoDate(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})$/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Some stores omit the quotes in XML. Conditions need them. */
function quoted(etag: string): string {
  if (!/^(?:W\/)?"?[\x21\x23-\x7e]+"?$/.test(etag))
    throw damagedXml("an ETag has a character that it cannot have");
  return etag.includes('"') ? etag : `"${etag}"`;
}

function isTruncated(root: XmlElement): boolean {
  const text = root.text("IsTruncated") ?? "false";
  if (text !== "true" && text !== "false") throw damagedXml("<IsTruncated> is not a boolean");
  return text === "true";
}

/** Names are percent-encoded, as we ask for it, unless the store does not know how. */
function decoderOf(root: XmlElement): (text: string) => string {
  if (root.text("EncodingType") !== "url") return (text) => text;
  return (text) => {
    try {
      return decodeURIComponent(text.replaceAll("+", " "));
    } catch {
      throw damagedXml("a name is not percent-encoded UTF-8");
    }
  };
}
