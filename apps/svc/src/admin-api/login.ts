import { z } from "zod";
import { testLoginSchema, type TestLogin } from "../administration/sessions/test-login.ts";
import { isoTime, operation, type Operation } from "./operation.ts";

const sessionSchema = z
  .strictObject({
    session_token: z.string().meta({ description: "For Authorization: Bearer; it is not shown again" }),
    id: z.string(),
    username: z.string(),
    role: z.enum(["user", "admin"]),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: "Session" });

/** The login of development mode. The operation does not exist in any other mode. */
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
    async handle({ body, client }) {
      const { token, record, identity } = await testLogin.logIn(body, client);
      return {
        body: {
          session_token: token.reveal(),
          id: record.id,
          username: identity.login,
          role: identity.role,
          expires_at: isoTime(record.expiresAt),
        },
      };
    },
  });
}
