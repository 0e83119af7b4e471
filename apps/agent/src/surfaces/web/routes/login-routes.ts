import { Secret } from "@devplat/base";
import { readCookie, sessionCookie } from "@devplat/web-kit";
import { Hono, type Context, type MiddlewareHandler } from "hono";
import { LOGIN_LIMIT_MS } from "../../../auth/login/login-flow.ts";
import { headersOnly } from "../../http-api/headers-only.ts";
import { PROBLEMS, documentOf, type Problem } from "../../http-api/problems/problem.ts";
import { storeProblem } from "../../http-api/problems/store-problem.ts";
import { AgentError, publicMessage } from "../../../errors.ts";
import type { Environment } from "../../http-api/environment.ts";
import { isFromForeignPage, isFromOwnPage } from "../../http-api/request-checks.ts";
import { problemResponse } from "./responses.ts";
import { readableFormOnly } from "./readable-form.ts";
import type { RouteParts } from "./route-parts.ts";
import { callbackPage, loginPage, loginProgressPage } from "../pages/login-page.ts";
import type { WebLogin } from "../state/web-login.ts";

type Ctx = Context<Environment>;

/** The browser sends the cookie of a login at the identity provider to these paths only. */
const OIDC_PATH = "/auth";

/** Sign-in in the browser: plain forms and pages that load themselves again, without scripting. */
export function loginRoutes(parts: RouteParts): Hono<Environment> {
  const { view, accessCheck, assets, texts, login } = parts;
  const app = new Hono<Environment>();
  const ticketName = `${parts.cookieName}_oidc`;

  const readable = readableFormOnly(parts);
  /** Checks of every post: it comes from a page of this daemon, has access, and no user is signed in. */
  const signedOutOnly: MiddlewareHandler<Environment> = async (c, next) => {
    if (!isFromOwnPage(c.env.incoming)) return await problemResponse(c, parts, PROBLEMS.originRefused);
    if (!accessCheck.isUnlocked(c.env.incoming))
      return await problemResponse(c, parts, PROBLEMS.unlockRequired);
    if (view.status().authenticated) return await problemResponse(c, parts, PROBLEMS.alreadySignedIn);
    return await readable(c, next);
  };

  async function show(c: Ctx, web: WebLogin, status: 200 | 403 | 502, refusal?: string): Promise<Response> {
    const model = { view: await web.view(), text: texts.login, ...(refusal !== undefined && { refusal }) };
    return c.html(loginPage(assets, model), status);
  }

  /** The login view again, with the reason of the refusal. @throws errors that are not refusals */
  async function refused(c: Ctx, web: WebLogin, error: unknown): Promise<Response> {
    if (error instanceof AgentError) return await show(c, web, 403, publicMessage(error));
    const problem: Problem | undefined = storeProblem(error);
    if (problem === undefined) throw error;
    return await show(c, web, problem.code === "store_unavailable" ? 502 : 403, sentence(problem));
  }

  app.use("/login/*", async (c, next) =>
    c.req.method === "POST" ? await signedOutOnly(c, next) : await next(),
  );

  app.post("/login/token", async (c) => {
    if (login === undefined) return await problemResponse(c, parts, PROBLEMS.noLogin);
    const token = (await form(c)).get("token")?.trim() ?? "";
    try {
      await login.pasteToken(new Secret(token), c.req.raw.signal);
      return c.redirect("/", 303);
    } catch (error) {
      return await refused(c, login, error);
    }
  });

  app.post("/login/ldap", async (c) => {
    if (login === undefined) return await problemResponse(c, parts, PROBLEMS.noLogin);
    const fields = await form(c);
    try {
      await login.startLdap((fields.get("username") ?? "").trim(), new Secret(fields.get("password") ?? ""));
      return c.redirect("/login/ldap", 303);
    } catch (error) {
      return await refused(c, login, error);
    }
  });

  app.get("/login/ldap", async (c) => {
    const state = login?.state();
    const underWay = state !== undefined && state.kind !== "failed";
    if (
      login === undefined ||
      !underWay ||
      !accessCheck.isUnlocked(c.env.incoming) ||
      view.status().authenticated
    )
      return c.redirect("/", 303);
    return c.html(loginProgressPage(assets, await login.view()));
  });

  app.post("/login/ldap/totp", async (c) => {
    const passcode = (await form(c)).get("passcode") ?? "";
    if (passcode.trim() !== "") login?.submitPasscode(new Secret(passcode.trim()));
    return c.redirect("/login/ldap", 303);
  });

  app.post("/login/cancel", (c) => {
    login?.cancel();
    return c.redirect("/", 303);
  });

  app.get("/auth/oidc/start", headersOnly, async (c) => {
    // A login that a foreign page starts could end without a question: the provider may know the user already.
    if (isFromForeignPage(c.env.incoming)) return await problemResponse(c, parts, PROBLEMS.originRefused);
    if (!accessCheck.isUnlocked(c.env.incoming) || view.status().authenticated) return c.redirect("/", 303);
    if (login === undefined) return await problemResponse(c, parts, PROBLEMS.noLogin);
    try {
      // The name by which the browser came: the cookie is for that one alone.
      const host = (c.env.incoming.headers.host ?? "").toLowerCase();
      const { url, ticket } = await login.startOidc(`http://${host}/auth/oidc/callback`);
      const cookie = { name: ticketName, value: ticket, secure: false, path: OIDC_PATH };
      c.header("Set-Cookie", sessionCookie({ ...cookie, maxAgeSeconds: LOGIN_LIMIT_MS / 1000 }));
      return c.redirect(url, 303);
    } catch (error) {
      return await refused(c, login, error);
    }
  });

  // No session is asked for here: coming from the provider the browser does not send its strict cookie. The ticket is.
  app.get("/auth/oidc/callback", headersOnly, async (c) => {
    const ticket = readCookie(c.env.incoming.headers.cookie, ticketName);
    const answer = new URL(c.req.url).searchParams;
    if (login?.finishOidc(ticket, answer) !== true)
      return await problemResponse(c, parts, PROBLEMS.noLoginUnderWay);
    const gone = { name: ticketName, value: "", secure: false, path: OIDC_PATH, maxAgeSeconds: 0 };
    c.header("Set-Cookie", sessionCookie(gone));
    return c.html(callbackPage(assets));
  });
  return app;
}

async function form(c: Ctx): Promise<URLSearchParams> {
  return new URLSearchParams(await c.req.text());
}

function sentence(problem: Problem): string {
  const { detail, hint } = documentOf(problem);
  return `${detail} ${hint ?? ""}`.trim();
}
