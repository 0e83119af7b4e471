import { createPublicKey, type KeyObject } from "node:crypto";
import { z } from "zod";
import { duration } from "@devplat/config";
import { httpUrl } from "./store-section.ts";

/** Asking a web server more often than this for a file that hardly changes is load without use; in milliseconds. */
const MIN_REFRESH_MS = 60_000;
/** The ASN.1 header of an Ed25519 public key (RFC 8410 section 4); the key's 32 bytes follow. */
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
const KEY_BYTES = 32;

/** Source of the rules and enrolments of a fleet. */
export const remoteSection = z
  .strictObject({
    url: httpUrl,
    refresh_interval: duration({ min: MIN_REFRESH_MS }).prefault("15m"),
    ca_cert: z.string().min(1).optional(),
    headers: z.record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string()).default({}),
    /** Ed25519: 32 bytes in base64, or PEM. */
    public_key: z.string().optional(),
    trust: z.enum(["rules", "full"]).default("rules"),
  })
  .superRefine((section, context) => {
    const fault = (key: string, message: string): void =>
      context.addIssue({ code: "custom", path: [key], message });
    const url = URL.parse(section.url);
    const isLocal = url !== null && ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname);
    if (url?.protocol === "http:" && !isLocal) fault("url", "must be https (http only for this host itself)");
    if (section.public_key !== undefined && ed25519Key(section.public_key) === undefined) {
      fault("public_key", "expected an Ed25519 public key: 32 bytes in base64, or PEM");
    }
    if (section.trust === "full" && section.public_key === undefined) {
      fault("public_key", "required for trust: full");
    }
  });

export type RemoteSection = z.infer<typeof remoteSection>;

/** The key that a text holds, or undefined. */
export function ed25519Key(text: string): KeyObject | undefined {
  try {
    const raw = Buffer.from(text.trim(), "base64");
    const key = text.includes("-----BEGIN")
      ? createPublicKey(text)
      : createPublicKey({ key: Buffer.concat([SPKI_PREFIX, raw]), format: "der", type: "spki" });
    const sized = text.includes("-----BEGIN") || raw.length === KEY_BYTES;
    return sized && key.asymmetricKeyType === "ed25519" ? key : undefined;
  } catch {
    return undefined;
  }
}
