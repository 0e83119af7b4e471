import { jsonOf, type HttpResponse } from "@devplat/http-client";

/** Statuses whose responses have no body (Fetch standard). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** Maximum of an interval in seconds, about thirty years, so that a time computed from it is valid. */
const MAX_SECONDS = 1e9;
/** Default lifetime of a device code, in seconds. */
const DEVICE_CODE_SECONDS = 900;

/**
 * A token server's response in the strict form that oauth4webapi accepts. Known deviations of servers:
 * - GitHub sends errors with status 200.
 * - Some omit `token_type`, or send empty members.
 * - Some send seconds as a string, or a number that is not valid. Less than a second counts as one second.
 * - Google's older device endpoint sends `verification_url`.
 */
export function strictResponse(response: HttpResponse): Response {
  const status = response.status < 200 || response.status > 599 ? 502 : response.status;
  const value = jsonOf(response);
  if (typeof value !== "object" || value === null || WITHOUT_BODY.has(status)) {
    return new Response(null, { status });
  }
  const members = Object.entries(value as Record<string, unknown>);
  const body = Object.fromEntries(members.filter(([, member]) => member !== "" && member !== null));
  for (const name of ["expires_in", "interval"]) {
    const seconds = Number(body[name] ?? Number.NaN);
    if (seconds >= 0) body[name] = Math.min(Math.max(seconds, 1), MAX_SECONDS);
    else delete body[name];
  }
  if (typeof body["error"] === "string") return Response.json(body, { status: status < 400 ? 400 : status });
  if ("access_token" in body) body["token_type"] ??= "bearer";
  if ("device_code" in body) {
    body["verification_uri"] ??= body["verification_url"];
    body["expires_in"] ??= DEVICE_CODE_SECONDS;
  }
  return Response.json(body, { status });
}
