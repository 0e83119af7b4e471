import type { KeyObject } from "node:crypto";
import type { SshErrorCode } from "@devplat/ssh-protocol";

/** Work with a passphrase for the thread. Its key derivation takes half a second or more of a processor. */
export type KeyJob =
  | { readonly kind: "open"; readonly text: string; readonly passphrase: string }
  | {
      readonly kind: "encode";
      readonly privateKey: KeyObject;
      readonly comment: string;
      readonly passphrase: string;
    };

export type KeyJobResult =
  | { readonly privateKey: KeyObject }
  | { readonly text: string }
  /** Messages of the format's own errors never quote the key. Of other errors nothing is sent. */
  | { readonly failure: { readonly code: SshErrorCode; readonly message: string } | undefined };
