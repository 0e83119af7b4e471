import { Secret } from "@devplat/base";
import { z } from "zod";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { Sessions } from "../identity/login/sessions.ts";
import type { TestLogin } from "../identity/login/test-login.ts";
import { operation, type Operation } from "./operation.ts";
import { recordEnd } from "./sessions.ts";

/** A login as a person would write it. Any is accepted, as long as a log line and a page can show it. */
export const usernameSchema = z
  .string()
  .min(1)
  .max(100)
  .regex(/^(?=.*\S)[^\p{Cc}\p{Zl}\p{Zp}]+$/u, "must be a name without control characters");

const testLoginSchema = z
  .strictObject({
    username: usernameSchema.meta({ example: "alice" }),
    role: z.enum(["user", "admin"]).optional().meta({ description: "Default user" }),
    host_token: z.string().min(1).max(4096).optional().meta({
      description: "Code-host token that stands behind the user's proxy tokens; default dev.host_token",
    }),
  })
  .meta({ id: "TestLogin" });

const sessionSchema = z
  .strictObject({
    session_token: z.string().meta({ description: "For Authorization: Bearer; it is not shown again" }),
    id: z.string(),
    username: z.string(),
    role: z.enum(["user", "admin"]),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: "Session" });

/** Development mode's login; the operation is not there in any other mode. */
export function testLoginOperation(testLogin: TestLogin): Operation {
  return operation({
    method: "POST",
    path: "/auth/test-login",
    id: "testLogin",
    tag: "Login",
    summary: "Create a test session (development mode only)",
    access: "public",
    body: testLoginSchema,
    result: sessionSchema,
    successStatus: 200,
    async handle({ body, client }) {
      const request = {
        username: body.username.trim(),
        role: body.role ?? "user",
        hostToken: body.host_token === undefined ? undefined : new Secret(body.host_token),
      };
      const { token, record, identity } = await testLogin.logIn(request, client);
      return {
        status: 200,
        body: {
          session_token: token.reveal(),
          id: record.id,
          username: identity.login,
          role: identity.role,
          expires_at: new Date(record.expiresAt).toISOString(),
        },
      };
    },
  });
}

export function logoutOperation(sessions: Sessions, audit: AuditTrail): Operation {
  return operation({
    method: "POST",
    path: "/auth/logout",
    id: "logout",
    tag: "Login",
    summary: "End the session that makes this request",
    access: "user",
    successStatus: 204,
    async handle({ identity, client }) {
      if (identity !== undefined) {
        await sessions.end(identity.sessionId);
        recordEnd(audit, identity, { id: identity.sessionId }, client);
      }
      return { status: 204 };
    },
  });
}
