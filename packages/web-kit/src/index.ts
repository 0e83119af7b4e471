export { SECURITY_HEADERS, STRICT_CSP } from "./headers.ts";
export { isLoopbackHost, isOwnOrigin } from "./origin.ts";
export { Assets, addCommonAssets, type Asset } from "./assets.ts";
export { hostCookieName, readCookie, sessionCookie, type SessionCookieOptions } from "./cookies.ts";
export { CsrfTokens } from "./csrf.ts";
export { html, raw, type HtmlEscapedString } from "./html.ts";
export {
  EventStreams,
  HEARTBEAT_MS,
  MAX_STREAMS,
  MAX_UNREAD_BYTES,
  formatEvent,
  type EventFrame,
  type EventStreamsOptions,
  type StreamOptions,
} from "./event-streams.ts";
export { livePartial, page, type Html, type PageOptions } from "./page.ts";
export {
  OPENAPI_PATH,
  PROBLEM_MEDIA_TYPE,
  problemDocument,
  type Problem,
  type ProblemDocument,
  type ProblemType,
  type ProblemTypes,
} from "./problem.ts";
export { targetFault } from "./request-target.ts";
export { sentence } from "./sentence.ts";
