import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { Secret } from "@devplat/base";
import { z } from "zod";
import { AgentError } from "../../errors.ts";
import { SEAL_MARKER, type Sealer } from "../token/token-file.ts";
import type { Tpm } from "./tpm.ts";

/** AES-256-GCM (NIST SP 800-38D): bytes of key and nonce. */
const KEY_BYTES = 32;
const NONCE_BYTES = 12;

const bytes = z.base64url().transform((text) => Buffer.from(text, "base64url"));
const envelope = z.object({
  pub: bytes,
  priv: bytes,
  pcrs: z.array(z.int().min(0).max(23)),
  nonce: bytes,
  tag: bytes,
  data: bytes,
});

/** Seals by a fresh key that the TPM seals: a TPM takes no more than 128 bytes itself. */
export class TpmSealer implements Sealer {
  readonly #tpm: Tpm;
  readonly #pcrs: readonly number[];

  /** @param pcrs `store.mtls.seal_to_pcrs` */
  constructor(tpm: Tpm, pcrs: readonly number[]) {
    this.#tpm = tpm;
    this.#pcrs = pcrs;
  }

  async seal(plain: Secret): Promise<string> {
    const key = randomBytes(KEY_BYTES);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(SEAL_MARKER));
    const data = Buffer.concat([cipher.update(plain.reveal(), "utf8"), cipher.final()]);
    const sealed = await this.#tpm.seal(key, this.#pcrs);
    const text = (part: Buffer): string => part.toString("base64url");
    const parts = {
      pub: text(sealed.publicPart),
      priv: text(sealed.privatePart),
      pcrs: this.#pcrs,
      nonce: text(nonce),
      tag: text(cipher.getAuthTag()),
      data: text(data),
    };
    return SEAL_MARKER + Buffer.from(JSON.stringify(parts)).toString("base64url");
  }

  async unseal(sealed: string): Promise<Secret> {
    const parts = parse(sealed.trim().slice(SEAL_MARKER.length));
    const key = await this.#tpm.unseal({ publicPart: parts.pub, privatePart: parts.priv }, parts.pcrs);
    try {
      const decipher = createDecipheriv("aes-256-gcm", key, parts.nonce)
        .setAAD(Buffer.from(SEAL_MARKER))
        .setAuthTag(parts.tag);
      return new Secret(Buffer.concat([decipher.update(parts.data), decipher.final()]).toString("utf8"));
    } catch {
      throw damaged();
    }
  }
}

function parse(text: string): z.infer<typeof envelope> {
  try {
    return envelope.parse(JSON.parse(Buffer.from(text, "base64url").toString()));
  } catch {
    throw damaged();
  }
}

function damaged(): AgentError {
  return new AgentError("seal_failed", "what is sealed to the TPM is damaged", {
    hint: "Sign in again to seal it again.",
  });
}
