import { systemCode } from "@devplat/base";
import { HttpClientError, boundedRequest, type HttpMethod } from "@devplat/http-client";
import { SvcError } from "../errors.ts";

/** Milliseconds for a complete response. A proxy may take time to connect, and a list may be long. */
const TIMEOUT_MS = 60_000;
/** Maximum size of a response in bytes. Responses of the administration API are far smaller. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

export interface ApiResponse {
  readonly status: number;
  readonly text: string;
  readonly link: string | undefined;
}

/**
 * Sends one request to a service, through the proxy that the environment names for it.
 *
 * @throws SvcError `server_unreachable`
 */
export async function exchange(
  url: URL,
  method: HttpMethod,
  content: string | undefined,
  headers: Readonly<Record<string, string>>,
): Promise<ApiResponse> {
  try {
    const response = await boundedRequest(url, {
      method,
      headers,
      ...(content !== undefined && { body: content }),
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_RESPONSE_BYTES,
      environment: process.env,
    });
    // Node joins repeated headers of this name.
    const link = response.headers.link as string | undefined;
    return { status: response.status, text: response.body.toString("utf8"), link };
  } catch (error) {
    if (error instanceof HttpClientError) throw unreachable(url, error);
    throw error;
  }
}

function unreachable(url: URL, error: HttpClientError): SvcError {
  if (error.code === "too_large") {
    const message = `The answer of ${url.origin} is too large to be one of the service`;
    return new SvcError("server_unreachable", message, { cause: error });
  }
  const { found, hint } = connectionFault(error, url);
  return new SvcError("server_unreachable", `Cannot reach the service at ${url.origin}: ${found}`, {
    cause: error,
    hint,
  });
}

/** Reason why a service gave no response, and the action that may help. */
interface ConnectionFault {
  readonly found: string;
  readonly hint: string;
}

const START_IT = "Start it with 'svc serve', or set SVC_URL to its address.";
const TIMEOUT: ConnectionFault = { found: "no answer in time", hint: START_IT };
const UNKNOWN_NAME: ConnectionFault = {
  found: "its name is not known",
  hint: "Look at the address (SVC_URL).",
};
const UNTRUSTED: ConnectionFault = {
  found: "no authority that is trusted here signed its certificate",
  hint: "Add the authority to this machine's, or name its PEM file in NODE_EXTRA_CA_CERTS.",
};

/** Faults by the codes of Node and OpenSSL. */
const FAULTS: Readonly<Record<string, ConnectionFault>> = {
  ECONNREFUSED: { found: "nothing listens there", hint: START_IT },
  ETIMEDOUT: TIMEOUT,
  ENOTFOUND: UNKNOWN_NAME,
  EAI_AGAIN: UNKNOWN_NAME,
  ERR_TLS_CERT_ALTNAME_INVALID: {
    found: "its certificate is for other names",
    hint: "Use a name of its certificate (SVC_URL).",
  },
  CERT_HAS_EXPIRED: { found: "its certificate has expired", hint: "Its administrator has to renew it." },
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  EPROTO: { found: "it does not speak TLS", hint: "Is its address http:// (SVC_URL)?" },
};

function connectionFault(error: HttpClientError, url: URL): ConnectionFault {
  if (error.code === "proxy_unavailable" || error.code === "proxy_misconfigured") {
    return { found: error.message, hint: error.hint ?? "" };
  }
  const code = error.code === "timeout" ? undefined : systemCode(error.cause);
  if (code === undefined) return TIMEOUT;
  if (code === "ECONNRESET" && url.protocol === "http:") {
    return { found: "it closed the connection", hint: "Is its address https:// (SVC_URL)?" };
  }
  return FAULTS[code] ?? { found: code, hint: START_IT };
}
