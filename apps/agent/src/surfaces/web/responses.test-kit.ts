import assert from "node:assert/strict";
import type { Answer, TestServer } from "./server.test-kit.ts";

const HEADERS: readonly [string, RegExp][] = [
  [
    "content-security-policy",
    /^default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'$/,
  ],
  ["x-content-type-options", /^nosniff$/],
  ["referrer-policy", /^same-origin$/],
  ["cache-control", /no-store|immutable/],
];

/** Asserts that a response has the headers of every response of the port. */
export function assertProtected(response: Pick<Answer, "headers">): void {
  for (const [name, pattern] of HEADERS) assert.match(String(response.headers[name]), pattern, name);
}

/** Code of the problem that a response tells; undefined for other JSON. */
export function code(response: Answer): unknown {
  return (JSON.parse(response.body) as { code?: unknown }).code;
}

/** A CSRF token for one change over the API. */
export async function csrf(server: TestServer, headers: Record<string, string> = {}): Promise<string> {
  const response = await server.send("/api/v1/csrf", { headers });
  return (JSON.parse(response.body) as { token: string }).token;
}
