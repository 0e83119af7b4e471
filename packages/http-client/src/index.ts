export {
  HttpClient,
  boundedRequest,
  jsonOf,
  type HttpClientOptions,
  type HttpMethod,
  type HttpRequest,
  type HttpResponse,
  type TlsSettings,
} from "./client.ts";
export { findProxy } from "./find-proxy.ts";
export { HttpClientError } from "./errors.ts";
export { proxyText, readProxy, type Proxy } from "./proxy-address.ts";
export type { Environment } from "./proxy-setting.ts";
