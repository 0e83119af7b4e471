import type { RepositoryId } from "../../../access/repository-id.ts";
import { MAX_MANIFEST_BYTES, ManifestFault, decodeManifest, encodeManifest } from "./manifest-codec.ts";
import type { ManifestKeys } from "./manifest-keys.ts";
import type { Manifest } from "./manifest.ts";

/** Format that this version writes. */
const FORMAT = 1;
/** The head has one form, so that the HMAC is compared before anything else is read. */
const HEAD = /^\{"format":(\d{1,9}),"key_id":"([\da-f]{16})","hmac":"([\da-f]{64})","manifest":/;
const MAX_HEAD_BYTES = 160;
const END = "}";

/**
 * Result of reading a manifest from the bucket.
 * - `other_key`: it names a key that is not here. It may be a good one.
 * - `newer_format`: a newer version of this program wrote it.
 * - `forged`: the HMAC is not that of its content for this service, code host and repository.
 * - `malformed`: it is not a manifest.
 */
export type OpenedManifest =
  | { readonly kind: "manifest"; readonly manifest: Manifest; readonly hmac: string }
  | { readonly kind: "other_key"; readonly keyId: string }
  | { readonly kind: "newer_format" }
  | { readonly kind: "forged" }
  | { readonly kind: "malformed"; readonly reason: string };

/** A manifest as it is written. */
export interface SealedManifest {
  readonly bytes: Buffer;
  /** In hex. It tells this manifest from every other one. */
  readonly hmac: string;
  /** As others read it. */
  readonly manifest: Manifest;
}

/** The repository that a manifest is for. */
export interface ManifestSubject {
  /** Address of the code host. */
  readonly hostUrl: string;
  readonly id: RepositoryId;
}

/**
 * Encodes a manifest with its HMAC. That covers code host, owner, repository and every member: generation and epoch too.
 *
 * @throws ManifestFault: nobody could read it
 */
export function sealManifest(
  manifest: Manifest,
  subject: ManifestSubject,
  keys: ManifestKeys,
): SealedManifest {
  const text = encodeManifest(manifest);
  const hmac = keys.sign([contextOf(FORMAT, subject), text]);
  const head = `{"format":${FORMAT},"key_id":"${keys.currentId}","hmac":"${hmac}","manifest":`;
  const bytes = Buffer.from(head + text + END);
  if (bytes.length > MAX_MANIFEST_BYTES)
    throw new ManifestFault("the manifest", `of up to ${MAX_MANIFEST_BYTES} bytes`);
  return { bytes, hmac, manifest: decodeManifest(text) };
}

/** Reads a manifest. Never throws. */
export function openManifest(bytes: Buffer, subject: ManifestSubject, keys: ManifestKeys): OpenedManifest {
  const malformed = (reason: string): OpenedManifest => ({ kind: "malformed", reason });
  if (bytes.length > MAX_MANIFEST_BYTES) return malformed("it is too large");
  const head = HEAD.exec(bytes.toString("latin1", 0, MAX_HEAD_BYTES));
  if (head === null) return malformed("it does not begin as a manifest does");
  const [start, format = "", keyId = "", hmac = ""] = head;
  const content = bytes.subarray(start.length, bytes.length - END.length);
  if (bytes.toString("latin1", bytes.length - END.length) !== END)
    return malformed("it does not end as a manifest does");
  const isRight = keys.verify(keyId, hmac, [contextOf(Number(format), subject), content]);
  if (isRight === undefined) return { kind: "other_key", keyId };
  if (!isRight) return { kind: "forged" };
  // Only the HMAC tells a newer program from a forger.
  if (Number(format) !== FORMAT) return { kind: "newer_format" };
  try {
    return { kind: "manifest", manifest: decodeManifest(content.toString("utf8")), hmac };
  } catch (error) {
    if (error instanceof ManifestFault) return malformed(error.message);
    throw error;
  }
}

/** JSON, so that no two subjects have the same text. */
function contextOf(format: number, { hostUrl, id }: ManifestSubject): string {
  return `${JSON.stringify(["svc manifest", format, hostUrl, id.owner, id.name])}\n`;
}
