import { Secret } from "@devplat/base";
import { isOwnOrigin, sessionCookie, type Html } from "@devplat/web-kit";
import type { Context, Hono } from "hono";
import { z } from "zod";
import { readForm } from "../admin-api/body.ts";
import { clientOf } from "../admin-api/client.ts";
import { usernameSchema } from "../admin-api/login.ts";
import { requestFacts } from "../admin-api/router.ts";
import { validateBody } from "../admin-api/validation.ts";
import { SESSION_COOKIE } from "../login/authenticator.ts";
import { SESSION_LIFETIME_MS, type Sessions } from "../login/sessions.ts";
import type { TestLogin } from "../login/test-login.ts";
import type { OwnAddress } from "../own-address.ts";
import { refusedForm, type FormState } from "./form.ts";
import type { Form, Pages } from "./pages.ts";

export interface LoginRoutes {
  readonly app: Hono;
  readonly pages: Pages;
  readonly sessions: Sessions;
  /** Undefined: not in development mode. */
  readonly testLogin: TestLogin | undefined;
  readonly address: OwnAddress;
  readonly loginPage: (form: FormState) => Html;
}

const FIELDS = ["username", "role", "host_token"] as const;
const loginFormSchema = z.strictObject({
  username: usernameSchema,
  role: z.enum(["user", "admin"]),
  host_token: z.string().max(4096),
});

/** Signing in by development mode's form, and out. */
export function addLoginRoutes({ app, pages, sessions, testLogin, address, loginPage }: LoginRoutes): void {
  const setCookie = (context: Context, value: string, maxAgeSeconds: number): void => {
    const cookie = { name: SESSION_COOKIE, value, secure: address.isHttps, maxAgeSeconds };
    context.header("Set-Cookie", sessionCookie(cookie));
  };

  app.post("/admin/login", async (context) => {
    const { origin, host } = requestFacts(context);
    if (testLogin === undefined) {
      return pages.say(context, 404, "Not found", "There is no login form in this mode.");
    }
    // Nobody is signed in yet, so the authenticator has not looked; a foreign page must not sign anybody in either.
    if (!isOwnOrigin(origin, address.origins(host))) {
      return pages.say(
        context,
        403,
        "Not allowed",
        `Open this page under ${address.baseUrl} (server.base_url) and try again.`,
      );
    }
    let form: Form = {};
    try {
      form = Object.fromEntries(await readForm(context.req.raw));
      const login = validateBody(loginFormSchema, { role: "user", host_token: "", ...form });
      const request = {
        username: login.username.trim(),
        role: login.role,
        hostToken: login.host_token === "" ? undefined : new Secret(login.host_token),
      };
      const { token } = await testLogin.logIn(request, clientOf(context));
      setCookie(context, token.reveal(), SESSION_LIFETIME_MS / 1000);
      return context.redirect("/admin", 303);
    } catch (error) {
      const { host_token: _, ...typed } = form;
      const refused = refusedForm(error, typed, FIELDS);
      return refused === undefined
        ? pages.fail(context, error)
        : pages.show(context, loginPage(refused), 422);
    }
  });

  pages.get("/admin/login", false, async (context) => context.redirect("/admin", 303));

  pages.post("/admin/logout", false, async (context, identity) => {
    await sessions.end(identity.sessionId);
    setCookie(context, "", 0);
    return context.redirect("/admin", 303);
  });
}
