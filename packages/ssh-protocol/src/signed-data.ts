import { SshProtocolError } from "./errors.ts";
import { decodeSshsigData, isSshsigData, type SshsigData } from "./sshsig.ts";
import { decodeUserauthRequest, type UserauthRequest } from "./userauth-request.ts";

/** Purpose of data that an agent is asked to sign. */
export type SignedData =
  | { readonly kind: "userauth"; readonly request: UserauthRequest }
  | { readonly kind: "sshsig"; readonly data: SshsigData }
  /** Neither a login nor an SSH signature. An agent that restricts its keys refuses this. */
  | { readonly kind: "unknown" };

/** Recognises the purpose of data. The two formats begin with different bytes; malformed data is `unknown`. */
export function describeSignedData(data: Buffer): SignedData {
  try {
    return isSshsigData(data)
      ? { kind: "sshsig", data: decodeSshsigData(data) }
      : { kind: "userauth", request: decodeUserauthRequest(data) };
  } catch (error) {
    if (error instanceof SshProtocolError) return { kind: "unknown" };
    throw error;
  }
}
