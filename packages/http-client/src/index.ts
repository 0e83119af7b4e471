export { boundedRequest, type BoundedAnswer, type BoundedRequest } from "./bounded-request.ts";
export { connectionsTo, type ConnectionOptions } from "./connections.ts";
export { HttpClientError, type HttpClientErrorCode } from "./errors.ts";
export { proxyFor, proxyText, type Proxy } from "./proxy.ts";
export type { Environment } from "./proxy-setting.ts";
