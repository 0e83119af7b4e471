import { systemCode } from "@devplat/base";
import type { HttpClientError } from "@devplat/http-client";

/** Codes of Node and OpenSSL for a certificate that cannot be traced to an authority that is trusted here. */
const UNTRUSTED: readonly string[] = [
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
];
const START_IT = "Start it with 'svc serve', or set SVC_URL to its address.";

/** Why the service gave no answer, and what to do about it. */
export interface ConnectionFault {
  readonly found: string;
  readonly hint: string;
}

/** What a failed connection to the service means for the person at the command line. */
export function connectionFault(error: HttpClientError, url: URL): ConnectionFault {
  if (error.code === "proxy_unavailable" || error.code === "proxy_misconfigured") {
    return { found: error.message, hint: error.hint ?? "" };
  }
  const code = error.code === "timeout" ? "ETIMEDOUT" : systemCode(error.cause);
  if (code === "ECONNREFUSED") return { found: "nothing listens there", hint: START_IT };
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return { found: "its name is not known", hint: "Look at the address (SVC_URL)." };
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return { found: "its certificate is for other names", hint: "Use a name of its certificate (SVC_URL)." };
  }
  if (code === "CERT_HAS_EXPIRED") {
    return { found: "its certificate is over", hint: "Its administrator has to renew it." };
  }
  if (code !== undefined && UNTRUSTED.includes(code)) {
    return {
      found: "no authority that is trusted here signed its certificate",
      hint: "Add the authority to this machine's, or name its PEM file in NODE_EXTRA_CA_CERTS.",
    };
  }
  if (code === "EPROTO") return { found: "it does not speak TLS", hint: "Is its address http:// (SVC_URL)?" };
  if (code === "ECONNRESET" && url.protocol === "http:") {
    return { found: "it closed the connection", hint: "Is its address https:// (SVC_URL)?" };
  }
  if (code === "ETIMEDOUT" || code === undefined) return { found: "no answer in time", hint: START_IT };
  return { found: code, hint: START_IT };
}
