import { systemCode } from "@devplat/base";
import type { ObjectStoreError, ObjectStoreErrorCode, ProbeRow } from "@devplat/object-store";
import { usesPathStyle } from "../../../config/path-style.ts";

/** Settings that decide which remedy fits. */
export interface BucketSettings {
  readonly object_endpoint?: string | undefined;
  readonly object_path_style?: boolean | undefined;
  readonly object_access_key_id?: string | undefined;
}

type Remedy = (settings: BucketSettings, error: ObjectStoreError) => string;

const CA_FILE: Remedy = () =>
  "set cache.object_ca_file to the PEM file of the authority that signed its certificate";
const ENDPOINT = "cache.object_endpoint";

/** Faults of a connection, by the code of Node, OpenSSL or undici. */
const BY_SYSTEM_CODE: Readonly<Record<string, Remedy>> = {
  ECONNREFUSED: () => `nothing listens there: start the store, or correct ${ENDPOINT}`,
  ECONNRESET: () => `if the store speaks TLS there, or does not, correct http:// or https:// in ${ENDPOINT}`,
  UND_ERR_SOCKET: () =>
    `if the store speaks TLS there, or does not, correct http:// or https:// in ${ENDPOINT}`,
  EHOSTUNREACH: () => `there is no way to this host: correct ${ENDPOINT}, or look at network and firewall`,
  ENETUNREACH: () => `there is no way to this network: correct ${ENDPOINT}, or look at network and firewall`,
  UND_ERR_CONNECT_TIMEOUT: () =>
    `no connection came up: correct ${ENDPOINT}, or look at network and firewall`,
  ENOTFOUND: unknownName,
  EAI_AGAIN: unknownName,
  SELF_SIGNED_CERT_IN_CHAIN: CA_FILE,
  DEPTH_ZERO_SELF_SIGNED_CERT: () =>
    "its certificate is self-signed: set cache.object_ca_file to this certificate",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: CA_FILE,
  UNABLE_TO_GET_ISSUER_CERT: CA_FILE,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: CA_FILE,
  CERT_SIGNATURE_FAILURE: () =>
    "cache.object_ca_file has another authority of the same name: set the right one",
  CERT_HAS_EXPIRED: () => "renew the certificate of the store, or correct the clock of this machine",
  CERT_NOT_YET_VALID: () => "correct the clock of this machine or of the store",
  ERR_TLS_CERT_ALTNAME_INVALID: (settings) =>
    usesPathStyle(settings)
      ? `its certificate is for another name: use that name in ${ENDPOINT}`
      : "its certificate does not cover the bucket's own host name: set cache.object_path_style: true",
  ERR_SSL_WRONG_VERSION_NUMBER: speaksHttp,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: speaksHttp,
};

/** Faults that the store names. */
const BY_STORE_CODE: Readonly<Record<string, Remedy>> = {
  InvalidAccessKeyId: (settings) =>
    `the store does not know this key id: correct ${credentialOf(settings, "id")}`,
  SignatureDoesNotMatch: (settings) =>
    `the secret is not that of the key id: correct ${credentialOf(settings, "secret")}`,
  ExpiredToken: () => "the temporary credentials are over: renew their source in the AWS chain",
  RequestTimeTooSkewed: () =>
    "correct the clock of the store or of this machine: they differ by more than 15 minutes",
};

const BY_CODE: Partial<Readonly<Record<ObjectStoreErrorCode, Remedy>>> = {
  bucket_missing: (settings) =>
    usesPathStyle(settings)
      ? "create it, or correct cache.object_bucket"
      : "create it, correct cache.object_bucket, or set cache.object_path_style: true if the store knows no host names of buckets",
  wrong_region: (_, { region }) =>
    region === undefined
      ? "set cache.object_region to the region of the bucket"
      : `set cache.object_region to ${region}`,
  credentials_missing: () =>
    "set cache.object_access_key_id and cache.object_secret_access_key, or AWS_PROFILE, a web identity or a role of this machine",
  credentials_refused: (settings) => `correct ${credentialOf(settings, "id")}, and the secret with it`,
  denied: (_, { permission }) => `give the credentials the permission ${permission ?? "that this needs"}`,
  timeout: () =>
    `look at the store and the way to it; if it is only slow, raise cache.object_timeout_seconds`,
  store_full: () => "make room in the store, or raise its quota",
  slow_down: () => "raise the limit of requests at the store",
};

/** Remedy for a fault of the bucket, with the key of the setting. Undefined: no setting repairs it. */
function bucketRemedy(error: ObjectStoreError, settings: BucketSettings): string | undefined {
  const { code, storeCode, cause, message } = error;
  const remedy =
    (code === "unreachable" ? BY_SYSTEM_CODE[systemCode(cause) ?? ""] : undefined) ??
    BY_STORE_CODE[storeCode ?? ""] ??
    BY_CODE[code];
  if (remedy !== undefined) return remedy(settings, error);
  if (message.includes("certificates of the object store")) return "correct cache.object_ca_file";
  // Servers of TLS answer plain HTTP with 400 and a text of their own.
  const isPlain = settings.object_endpoint?.startsWith("http:") === true;
  if (code === "refused" && storeCode === undefined && isPlain)
    return `if the store expects TLS there, write https:// in ${ENDPOINT}`;
  return undefined;
}

/** A fault in one line: what failed, why, and what to do. */
export function bucketFault(error: ObjectStoreError, settings: BucketSettings): string {
  const remedy = bucketRemedy(error, settings);
  return remedy === undefined ? error.message : `${error.message}. To repair it: ${remedy}`;
}

/** Reason of a row that is not `yes`. */
export function rowReason({ error, reason }: ProbeRow, settings: BucketSettings): string | undefined {
  return error === undefined ? reason : bucketFault(error, settings);
}

function unknownName(settings: BucketSettings): string {
  return usesPathStyle(settings)
    ? `the host name is not known here: correct ${ENDPOINT}, or look at the name server`
    : `the host name with the bucket in it is not known here: set cache.object_path_style: true, or correct ${ENDPOINT}`;
}

function speaksHttp(): string {
  return `the store speaks plain HTTP there: write http:// in ${ENDPOINT}`;
}

function credentialOf({ object_access_key_id: keyId }: BucketSettings, part: "id" | "secret"): string {
  if (keyId === undefined) return "the credentials of the AWS chain";
  return part === "id" ? "cache.object_access_key_id" : "cache.object_secret_access_key";
}
