import type { Secret } from "@devplat/base";

/** A statement that helps the user to decide. */
export interface Fact {
  readonly text: string;
  /** The daemon has checked it. Otherwise only the client says so. */
  readonly verified: boolean;
}

/** A question to the user about a key. */
export interface Question {
  readonly kind: "confirm" | "passphrase";
  /** Comment of the key. */
  readonly comment: string;
  readonly fingerprint: string;
  readonly facts: readonly Fact[];
}

/** The user's answer. `confirmed: false` also refuses to give a passphrase. */
export type Answer = { readonly confirmed: boolean } | { readonly passphrase: Secret };
