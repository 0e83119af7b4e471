import { hash } from "node:crypto";

const digests = new WeakMap<Buffer, string>();

/** SHA-256 of a response, which nobody may write to. Computed once: concurrent responses with equal bytes come in one buffer. */
export function digestOf(body: Buffer): string {
  const digest = digests.get(body) ?? hash("sha256", body, "base64");
  digests.set(body, digest);
  return digest;
}
