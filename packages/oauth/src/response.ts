import { jsonOf, type HttpResponse } from "@devplat/http-client";

/** Statuses whose responses have no body (Fetch standard). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** Seconds that a server may speak of: some thirty years, so that a time made of them is one. */
const MAX_SECONDS = 1e9;
/** Life of a device code without a stated end, in seconds. */
const DEVICE_CODE_SECONDS = 900;

/**
 * A token server's response in the strict form that oauth4webapi reads. What servers in use do differently:
 * - GitHub sends errors with status 200.
 * - Some leave out `token_type`, or send members that are empty.
 * - Some send seconds as text, or such as no time can be made of. Less than a second counts as one.
 * - Google's older device endpoint says `verification_url`.
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
