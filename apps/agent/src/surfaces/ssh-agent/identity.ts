import type { Secret } from "@devplat/base";
import type { SshConfirm } from "../../config/sections/ssh-agent-section.ts";
import type { SshAgentIdentityView } from "../../ssh-agent-view.ts";

/** Where a key may be used. Undefined: everywhere. */
export interface KeyRestrictions {
  /** Patterns of destinations, as `[!][USER@]HOST`. */
  readonly hosts: readonly string[] | undefined;
  /** One pattern for each host between, nearest first, as in the steps of `ssh-add -h`. Empty: none between. */
  readonly via: readonly string[] | undefined;
  /** Namespaces of SSHSIG signatures, such as `git`. */
  readonly namespaces: readonly string[] | undefined;
  /** When the user is asked before a signature. Undefined: as the section says. */
  readonly confirm: SshConfirm | undefined;
}

/** A key that the SSH agent lists and signs with. The private half stays behind `sign`. */
export interface SshIdentity {
  /** The public key or certificate, as in RFC 4253 section 6.6 and PROTOCOL.certkeys. */
  readonly blob: Buffer;
  readonly comment: string;
  /** Path of its secret in the store; undefined for a certificate. */
  readonly path: string | undefined;
  readonly restrictions: KeyRestrictions;
  readonly state: Extract<SshAgentIdentityView["state"], "ready" | "needs-passphrase" | "unlocked">;
  /** End of the certificate, milliseconds since the epoch; undefined for a plain key. */
  readonly certificateExpiresAt: number | undefined;
  readonly unlockedUntil: number | undefined;
  /**
   * The signature blob. A key with a passphrase asks for it first.
   * @param rsaHash for RSA keys only
   * @throws AgentRefusal
   */
  sign(data: Buffer, rsaHash: "sha256" | "sha512" | undefined, signal: AbortSignal): Promise<Buffer>;
}

/** Keys of one origin. A source that fails lists what it knows, and says why in `problem`. */
export interface IdentitySource {
  readonly name: string;
  readonly kind: "kv" | "ca" | "enrolments";
  /** From memory; never waits for the store longer than a listing may take. Expired certificates are not in it. */
  identities(signal: AbortSignal): Promise<readonly SshIdentity[]>;
  /** The last result of `identities`, without a request. */
  known(): readonly SshIdentity[];
  problem(): string | undefined;
  /** Forgets every private key and passphrase: at lock, at sleep and at sign-out. */
  forget(): void;
  /** Calls back when its keys have changed until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void;
  stop(): Promise<void>;
}

/** A question to the user that a key waits for. */
export interface UserQuestions {
  /** @returns undefined if nobody answered in time or could be asked */
  passphrase(
    key: { readonly comment: string; readonly fingerprint: string; readonly wrongBefore: boolean },
    signal: AbortSignal,
  ): Promise<Secret | undefined>;
  /** @param facts what the prompt shows, each one verified or only claimed by the client */
  confirm(
    question: {
      readonly comment: string;
      readonly fingerprint: string;
      readonly facts: readonly { readonly text: string; readonly verified: boolean }[];
    },
    signal: AbortSignal,
  ): Promise<boolean>;
}
