import { systemCode } from "@devplat/base";
import { HttpClientError } from "./errors.ts";
import { proxyText, type Proxy } from "./proxy-address.ts";

export const PROXY_AUTHENTICATION_REQUIRED = 407;

/** Error for a proxy that refuses a request. */
export function refusedByProxy(proxy: Proxy, status: number, cause?: unknown): HttpClientError {
  const reason =
    status === PROXY_AUTHENTICATION_REQUIRED ? "it requires other credentials (407)" : `it answers ${status}`;
  return unavailable(proxy, `does not connect: ${reason}`, cause);
}

/** Error for a proxy that cannot be reached, or does not speak HTTP. */
export function lostProxy(proxy: Proxy, cause: unknown): HttpClientError {
  const code = systemCode(cause) ?? "connection fault";
  // Errors of the HTTP parsers of Node and undici.
  const isForeign = code.startsWith("HPE_") || (cause instanceof Error && cause.name === "HTTPParserError");
  const fault = isForeign ? "does not answer in HTTP" : `cannot be reached: ${code}`;
  return unavailable(proxy, fault, cause);
}

function unavailable(proxy: Proxy, fault: string, cause: unknown): HttpClientError {
  return new HttpClientError("proxy_unavailable", `${proxyText(proxy)} ${fault}`, {
    hint: proxy.hint,
    remedy: "retry",
    cause,
  });
}
