import { generateKeyPairSync } from "node:crypto";
import { Secret } from "@devplat/base";
import type { Fields } from "@devplat/secret-store";
import type { KeyPair } from "@devplat/ssh-protocol";
import { KeyThread } from "../key-thread/key-thread.ts";
import type { EnrolmentEngine, EnrolmentSteps } from "./engine.ts";

const MIN_PASSPHRASE = 8;

export interface SshOptions {
  readonly passphrase: "required" | "recommended" | "unsafe";
  readonly comment: string;
  /** Takes a new key with a passphrase before it is stored. The SSH agent can then use it without asking. */
  readonly onKey?: (pair: KeyPair) => void;
}

/** Makes an Ed25519 key pair in OpenSSH's format, under a passphrase that is stored nowhere. */
export class SshKey implements EnrolmentEngine {
  readonly interactive: boolean;
  readonly #options: SshOptions;

  constructor(options: SshOptions) {
    this.#options = options;
    this.interactive = options.passphrase !== "unsafe";
  }

  async run(steps: EnrolmentSteps, signal: AbortSignal): Promise<Fields> {
    const { passphrase: wanted, comment, onKey } = this.#options;
    let passphrase = "";
    if (wanted !== "unsafe") {
      const optional = wanted === "recommended";
      const help = optional
        ? "Protects the private key; empty leaves it unprotected."
        : "Protects the private key.";
      const fault = (value: string): string | undefined => {
        if (value === "" && optional) return undefined;
        return value.length < MIN_PASSPHRASE
          ? `a passphrase has at least ${MIN_PASSPHRASE} characters`
          : undefined;
      };
      const field = { name: "passphrase", help, secret: true, optional, confirm: true, fault };
      passphrase =
        (await steps.ask("Passphrase of the new SSH key", [field])).get("passphrase")?.reveal() ?? "";
    }
    return sshKeyFields(passphrase, comment, signal, passphrase === "" ? undefined : onKey);
  }
}

/** A new key pair as fields: `private_key` (PEM), `public_key` (a line of authorized_keys), `fingerprint`. */
export async function sshKeyFields(
  passphrase: string,
  comment: string,
  signal: AbortSignal,
  onKey?: SshOptions["onKey"],
): Promise<Fields> {
  // Loaded when a key is made: every start of the daemon would pay for it.
  const { encodeOpenSshKey, encodePublicKey, encodePublicKeyLine, fingerprint, publicKeyOf } =
    await import("@devplat/ssh-protocol");
  const { privateKey } = generateKeyPairSync("ed25519");
  const publicKey = publicKeyOf(privateKey);
  const blob = encodePublicKey(publicKey);
  const text =
    passphrase === ""
      ? encodeOpenSshKey(privateKey, { comment, passphrase: undefined })
      : await new KeyThread().encode(privateKey, { comment, passphrase: new Secret(passphrase) }, signal);
  onKey?.({ publicKey, privateKey });
  return new Map([
    ["private_key", text],
    ["public_key", `${encodePublicKeyLine(blob, comment)}\n`],
    ["fingerprint", fingerprint(blob)],
  ]);
}
