import type { Problem } from "./problem.ts";

/** Endpoints of earlier versions, and what to use instead. */
const REMOVED: readonly (readonly [path: RegExp, replacement: string])[] = [
  [/^\/auth\/ldap\/login$/, "POST /login/ldap"],
  [/^\/auth\/ldap\/status$/, "GET /login/ldap"],
  [/^\/auth\/ldap\/mfa$/, "POST /login/ldap/totp"],
  [/^\/auth\/token\/login$/, "POST /login/token"],
  [/^\/api\/v1\/enrol(?:\/.*)?$/, "/setup/ and /ui/enrolments/"],
];

/** The response for a path that is no longer served, or undefined. */
export function removedEndpoint(path: string): Problem | undefined {
  const entry = REMOVED.find(([pattern]) => pattern.test(path));
  if (entry === undefined) return undefined;
  return { detail: "This endpoint has been removed.", code: "removed", hint: `Use ${entry[1]} instead.` };
}
