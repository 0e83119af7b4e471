import { SecretStoreError } from "@devplat/secret-store";
import { Hono } from "hono";
import { ForwardError } from "../forwards/errors/forward-error.ts";
import type { LentToken } from "../forwards/tokens/child-tokens.ts";
import type { ApiParts, Environment } from "../http-api/environment.ts";
import { headersOnly } from "../http-api/headers-only.ts";
import { problemResponse } from "../http-api/problem-response.ts";
import { PROBLEMS, type Problem } from "../http-api/problems/problem.ts";
import { storeProblem } from "../http-api/problems/store-problem.ts";

/**
 * A borrower takes a peer for dead that has not responded within 3 seconds. A grant that takes longer goes on, and the next
 * request gets the token. In milliseconds.
 */
const LEND_LIMIT_MS = 2500;

export interface TokenRouteParts extends Pick<ApiParts, "view"> {
  /** @throws ForwardError `token_not_lendable` | `consent_pending` | SecretStoreError */
  readonly lend: () => Promise<LentToken>;
}

/** `GET /api/v1/token` of a peer socket: lends a token to the host that the socket is forwarded to. */
export function tokenRoute({ view, lend }: TokenRouteParts): Hono<Environment> {
  const app = new Hono<Environment>();
  app.get("/api/v1/token", headersOnly, async (c) => {
    if (!view.status().authenticated) return problemResponse(c, PROBLEMS.notSignedIn);
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => resolve(undefined), LEND_LIMIT_MS);
    try {
      const lent = await Promise.race([lend(), late]);
      if (lent === undefined) return problemResponse(c, PROBLEMS.storeTooSlow);
      const { token, expiresAt } = lent;
      const expires_at = expiresAt === undefined ? null : new Date(expiresAt).toISOString();
      return c.json({ token: token.reveal(), expires_at });
    } catch (error) {
      const problem = lendProblem(error);
      if (problem === undefined) throw error;
      return problemResponse(c, problem);
    } finally {
      clearTimeout(timer);
    }
  });
  return app;
}

function lendProblem(error: unknown): Problem | undefined {
  if (error instanceof SecretStoreError) return storeProblem(error);
  if (!(error instanceof ForwardError)) return undefined;
  const { code, message, hint } = error;
  if (code !== "token_not_lendable" && code !== "consent_pending") return undefined;
  return { detail: `${message}.`, code, ...(hint !== undefined && { hint }) };
}
