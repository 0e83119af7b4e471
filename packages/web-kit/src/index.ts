export { SECURITY_HEADERS, STRICT_CSP } from "./headers.ts";
export { isLoopbackHost, isOwnOrigin } from "./origin.ts";
export { Assets, addCommonAssets } from "./assets.ts";
export { hostCookieName, readCookie, sessionCookie } from "./cookies.ts";
export { CsrfTokens } from "./csrf.ts";
export { html, raw } from "./html.ts";
export { EventStreams, MAX_STREAMS, type EventFrame } from "./event-streams.ts";
export { livePartial, page, type Html } from "./page.ts";
export {
  OPENAPI_PATH,
  PROBLEM_MEDIA_TYPE,
  problemDocument,
  type Problem,
  type ProblemDocument,
  type ProblemTypes,
} from "./problem.ts";
export { targetFault } from "./request-target.ts";
export { sentence } from "./sentence.ts";
