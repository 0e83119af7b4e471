import { isLoopbackHost, isOwnOrigin, readCookie, sessionCookie } from "@devplat/web-kit";
import type { Context, Hono } from "hono";
import type { SessionUseCases } from "../../administration/sessions/sessions.ts";
import type { TestLogin } from "../../administration/sessions/test-login.ts";
import { readForm } from "../../http/request/request-body.ts";
import { clientOf, requestFacts } from "../../http/request/management-client.ts";
import { documentOf, problemOf } from "../../http/request/problem.ts";
import { sessionCookieName } from "../../identity/login/authenticator.ts";
import type { LoginLimits } from "../../identity/login/login-limits.ts";
import { returnPath } from "../../identity/login/return-to.ts";
import { SESSION_LIFETIME_MS, type StartedSession } from "../../identity/login/sessions.ts";
import {
  CALLBACK_PATH,
  LOGIN_LIFETIME_MS,
  type LoginCallback,
  type WebLogin,
} from "../../identity/login/web-login.ts";
import type { OwnAddress } from "../../own-address.ts";
import { EMPTY_FORM, refusedForm, type FormState } from "../common/form.ts";
import type { Page } from "../common/layout.ts";
import type { LoginPageOptions } from "./login-page.ts";
import { messagePage } from "../common/message-page.ts";
import type { Form, Pages, PageStatus } from "../common/pages.ts";

export interface LoginRoutes {
  readonly app: Hono;
  readonly pages: Pages;
  readonly sessions: SessionUseCases;
  /** Undefined: no OAuth client is configured. */
  readonly webLogin: WebLogin | undefined;
  readonly limits: LoginLimits;
  /** Undefined: not in development mode. */
  readonly testLogin: TestLogin | undefined;
  readonly address: OwnAddress;
  readonly loginPage: (returnTo: string, form: FormState, failure?: LoginPageOptions["failure"]) => Page;
}

const FIELDS = ["username", "role", "host_token"] as const;
/** Path of the cookie of a login that has begun, with http. No other path needs it. */
const LOGIN_COOKIE_PATH = "/auth";
const FAILURE_STATUS: readonly PageStatus[] = [400, 429, 502];

/** Signing in: with an account of the code host, and in development mode by a form. And signing out. */
export function addLoginRoutes(routes: LoginRoutes): void {
  addHostLogin(routes);
  addTestLogin(routes);
  const { pages, sessions } = routes;

  pages.get("/admin/login", "user", async ({ redirect }) => redirect("/ui"));

  pages.post("/admin/logout", "user", async ({ context, actor, redirect }) => {
    await sessions.logOut(actor);
    setSession(routes, context, "", 0);
    return redirect("/admin");
  });
}

function addHostLogin(routes: LoginRoutes): void {
  const { app, pages, webLogin, limits, address, loginPage } = routes;
  const fail = async (context: Context, error: unknown, returnTo: string): Promise<Response> => {
    const problem = problemOf(error);
    const document = problem && documentOf(problem);
    const status = FAILURE_STATUS.find((each) => each === document?.status);
    if (document === undefined || status === undefined) return pages.fail(context, error);
    const failure = { message: document.detail, hint: document.hint };
    return pages.show(context, loginPage(returnTo, EMPTY_FORM, failure), status);
  };
  const loginCookie = (name: string, value: string, maxAgeSeconds: number): string =>
    sessionCookie({
      name,
      value,
      secure: address.isHttps,
      path: address.isHttps ? "/" : LOGIN_COOKIE_PATH,
      maxAgeSeconds,
    });

  app.get("/auth/login", async (context) => {
    const returnTo = returnPath(context.req.query("return_to"));
    try {
      if (webLogin === undefined) return await pages.show(context, loginPage(returnTo, EMPTY_FORM), 404);
      limits.login(clientOf(context).address);
      // The callback comes back to the base address: under another name of this machine its cookie would be missing.
      const own = new URL(address.baseUrl);
      const host = context.req.header("host");
      if (isLoopbackHost(host) && isLoopbackHost(own.host) && host !== own.host) {
        const again = new URLSearchParams({ return_to: returnTo });
        return context.redirect(`${address.baseUrl}/auth/login?${again.toString()}`, 303);
      }
      const { location, cookie } = await webLogin.begin(returnTo);
      context.header("Set-Cookie", loginCookie(cookie.name, cookie.value, LOGIN_LIFETIME_MS / 1000));
      return context.redirect(location, 303);
    } catch (error) {
      return fail(context, error, returnTo);
    }
  });

  app.get(CALLBACK_PATH, async (context) => {
    const query = new URL(context.req.url).searchParams;
    const callback: LoginCallback = {
      code: query.get("code"),
      state: query.get("state"),
      error: query.get("error"),
      issuer: query.get("iss"),
    };
    const cookieName = webLogin?.cookieFor(callback);
    const { cookie } = requestFacts(context);
    try {
      if (webLogin === undefined) return await pages.show(context, loginPage("/ui", EMPTY_FORM), 404);
      const client = clientOf(context);
      limits.login(client.address);
      const browser = cookieName === undefined ? undefined : readCookie(cookie, cookieName);
      const { session, returnTo } = await webLogin.finish(callback, browser, client);
      await enter(routes, context, session);
      if (cookieName !== undefined) {
        context.header("Set-Cookie", loginCookie(cookieName, "", 0), { append: true });
      }
      return context.redirect(returnTo, 303);
    } catch (error) {
      return fail(context, error, "/ui");
    }
  });
}

function addTestLogin(routes: LoginRoutes): void {
  const { app, pages, testLogin, address, loginPage } = routes;
  app.post("/admin/login", async (context) => {
    const { origin, host } = requestFacts(context);
    if (testLogin === undefined) {
      return pages.show(context, messagePage("Not found", "There is no login form in this mode."), 404);
    }
    // Nobody is signed in yet, so the authenticator has not looked; a foreign page must not sign anybody in either.
    if (!isOwnOrigin(origin, address.origins(host))) {
      const text = `Open this page under ${address.baseUrl} (server.base_url) and try again.`;
      return pages.show(context, messagePage("Not allowed", text), 403);
    }
    let form: Form = {};
    try {
      form = Object.fromEntries(await readForm(context.req.raw));
      const { username = "", role = "user", host_token: hostToken = "" } = form;
      const input = { username, role, ...(hostToken === "" ? {} : { host_token: hostToken }) };
      await enter(routes, context, await testLogin.logIn(input, clientOf(context)));
      return context.redirect(returnPath(form["return_to"] ?? "/admin"), 303);
    } catch (error) {
      const { host_token: _, ...typed } = form;
      const refused = refusedForm(error, typed, FIELDS);
      return refused === undefined
        ? pages.fail(context, error)
        : pages.show(context, loginPage(returnPath(form["return_to"]), refused), 422);
    }
  });
}

/** Gives the browser its new session, and ends the one that it had before. */
async function enter(routes: LoginRoutes, context: Context, started: StartedSession): Promise<void> {
  const earlier = readCookie(requestFacts(context).cookie, sessionCookieName(routes.address));
  if (earlier !== undefined) {
    await routes.sessions.endEarlier({ ...started.identity, client: clientOf(context) }, earlier);
  }
  setSession(routes, context, started.token.reveal(), SESSION_LIFETIME_MS / 1000);
}

function setSession({ address }: LoginRoutes, context: Context, value: string, maxAgeSeconds: number): void {
  const cookie = { name: sessionCookieName(address), value, secure: address.isHttps, maxAgeSeconds };
  context.header("Set-Cookie", sessionCookie(cookie));
}
