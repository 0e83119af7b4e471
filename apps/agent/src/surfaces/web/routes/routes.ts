import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono, type Context, type MiddlewareHandler } from "hono";
import { traceRequests } from "../../http-api/trace-requests.ts";
import { refuseLargeBody } from "../../http-api/refuse-large-body.ts";
import { sessionCookie, type EventFrame } from "@devplat/web-kit";
import { NOT_TRIED_YET } from "../../../auth/sign-in.ts";
import { headersOnly } from "../../http-api/headers-only.ts";
import { readiness } from "../../http-api/status/health.ts";
import { PROBLEMS } from "../../http-api/problems/problem.ts";
import { removedEndpoint } from "../../http-api/problems/removed.ts";
import { apiRoutes } from "../../http-api/routes.ts";
import { storeProblem } from "../../http-api/problems/store-problem.ts";
import type { Environment } from "../../http-api/environment.ts";
import { MAX_BODY_BYTES, isFromForeignPage, isFromOwnPage } from "../../http-api/request-checks.ts";
import { problemResponse, isForPart } from "./responses.ts";
import { mayHoldDraft } from "./draft.ts";
import { endsSoon } from "./ends-soon.ts";
import { MAX_FORM_BYTES } from "../state/form-limit.ts";
import type { RouteParts } from "./route-parts.ts";
import { pageChannel, sshChannel } from "./live-updates.ts";
import { announcementText } from "../pages/announcements.ts";
import { configPage } from "../pages/config-page.ts";
import { indexPage } from "../pages/index-page.ts";
import { linkRefusedPage, lockedPage, unlockedPage } from "../pages/lock-pages.ts";
import { loginPage, startingPage, storeUnreachablePage } from "../pages/login-page.ts";
import { enrolmentRoutes } from "./enrolment-routes.ts";
import { loginRoutes } from "./login-routes.ts";
import { readableFormOnly } from "./readable-form.ts";
import { ruleRoutes } from "./rule-routes.ts";
import { mountRoutes } from "./mount-routes.ts";
import { copyResponse } from "./secret-actions.ts";
import { peerSocketRoutes } from "./ssh/peer-socket-routes.ts";
import { remoteRoutes } from "./ssh/remote-routes.ts";
import { sshAgentRoutes } from "./ssh/ssh-agent-routes.ts";
import { secretPageRoutes } from "./secret-routes.ts";
import { SESSION_LIFETIME_MS } from "../access/sessions.ts";
import { wizardStage } from "../state/setup-state.ts";
import { canSignOut } from "../state/sign-out-rule.ts";

/** Assets carry a digest in their name, so they may be kept for a year, the most that caches use. */
const ASSET_CACHE = "private, max-age=31536000, immutable";
/**
 * A look for a token that takes longer than this after the start, in seconds, waits for something else than the store, whose
 * silence shows before; then the form is shown.
 */
const STARTING_SECONDS = 10;
/** The store gets this long, in milliseconds, to say which credentials are there before the first page is chosen. */
const LOOK_LIMIT_MS = 2000;

/** Everything that the TCP port serves. */
export function routes(parts: RouteParts): Hono<Environment> {
  const { view, assets, logger } = parts;
  const app = new Hono<Environment>();
  app.use(traceRequests(parts.surface));

  const limitedTo = (maxSize: number): MiddlewareHandler<Environment> =>
    refuseLargeBody(maxSize, (c) => problemResponse(c, parts, PROBLEMS.bodyTooLarge));
  const [limitBody, limitForm] = [limitedTo(MAX_BODY_BYTES), limitedTo(MAX_FORM_BYTES)];
  app.use((c, next) => (mayHoldDraft(c) ? limitForm(c, next) : limitBody(c, next)));

  app.get("/healthz", (c) => c.json({ status: "ok" }));
  app.get("/readyz", (c) => {
    const status = readiness(view.status());
    return c.json({ status }, status === "ready" ? 200 : 503);
  });
  app.get("/static/:name", async (c) => {
    const asset = assets.find(c.req.path);
    if (asset === undefined) return await problemResponse(c, parts, PROBLEMS.notFound);
    const headers = { "Content-Type": asset.type, "Cache-Control": ASSET_CACHE };
    return c.body(new Uint8Array(asset.body), 200, headers);
  });

  app.route("/", apiRoutes(parts));
  app.route("/", loginRoutes(parts));
  app.route("/", browserRoutes(parts));

  app.notFound((c) => problemResponse(c, parts, removedEndpoint(c.req.path) ?? PROBLEMS.notFound));
  app.onError((error, c) => {
    const problem = storeProblem(error);
    if (problem !== undefined) {
      logger.debug({ err: error }, "the secrets store did not do what was asked");
      return problemResponse(c, parts, problem);
    }
    logger.error({ err: error, path: c.req.path }, "request failed");
    return problemResponse(c, parts, PROBLEMS.internal);
  });
  return app;
}

/** The page behind `/` for a signed-in user: the wizard until it was left or is done, else the main site. */
async function firstPage(
  { enrolments, setup }: RouteParts,
  signal: AbortSignal,
): Promise<"/setup/" | "/ui/"> {
  if (await setup.isLeft()) return "/ui/";
  if (wizardStage(enrolments.list()) === "wizard") {
    // The daemon may not have looked yet which credentials are there already.
    await enrolments
      .look(AbortSignal.any([signal, AbortSignal.timeout(LOOK_LIMIT_MS)]))
      .catch(() => undefined);
  }
  const stage = wizardStage(enrolments.list());
  if (stage === "passed") await setup.leave();
  return stage === "wizard" ? "/setup/" : "/ui/";
}

function browserRoutes(parts: RouteParts): Hono<Environment> {
  const { view, accessCheck, sessions, streams, live, assets, logger, cookieName, texts } = parts;
  const { signIn, clipboard, configuration, login, signOut } = parts;
  const app = new Hono<Environment>();

  const ownPageOnly: MiddlewareHandler<Environment> = async (c, next) => {
    if (!isFromOwnPage(c.env.incoming)) return await problemResponse(c, parts, PROBLEMS.originRefused);
    return await next();
  };
  /** Fragments, streams and forms: no redirect, because the user would not see its target. */
  const letInOnly: MiddlewareHandler<Environment> = async (c, next) => {
    if (!accessCheck.isUnlocked(c.env.incoming))
      return await problemResponse(c, parts, PROBLEMS.unlockRequired);
    if (!view.status().authenticated) return await problemResponse(c, parts, PROBLEMS.notSignedIn);
    return await next();
  };

  /** A stream of another site's page would replace one of our own pages. */
  const ownStreamOnly: MiddlewareHandler<Environment> = async (c, next) => {
    if (isFromForeignPage(c.env.incoming)) return await problemResponse(c, parts, PROBLEMS.originRefused);
    return await next();
  };

  app.get("/", async (c) => {
    if (!accessCheck.isUnlocked(c.env.incoming)) return c.html(lockedPage(assets));
    if (view.status().authenticated) return c.redirect(await firstPage(parts, c.req.raw.signal), 303);
    if (login === undefined) return await problemResponse(c, parts, PROBLEMS.noLogin);
    const state = login.state();
    if (state !== undefined && state.kind !== "failed") return c.redirect("/login/ldap", 303);
    const shown = await login.view();
    if (shown.storeUnreachable) return c.html(storeUnreachablePage(assets, shown));
    const starting = shown.reason === NOT_TRIED_YET && view.status().uptime_seconds < STARTING_SECONDS;
    if (starting) return c.html(startingPage(assets));
    return c.html(loginPage(assets, { view: shown, text: texts.login }));
  });

  app.get("/unlock", headersOnly, (c) => {
    const redemption = sessions.redeem(c.req.query("code") ?? "");
    if (redemption.outcome !== "opened") {
      const used = redemption.outcome === "used";
      if (used)
        logger.warn({}, "a link of 'agent open' was used twice; the session that it opened has been ended");
      return c.html(linkRefusedPage(assets, used), 403);
    }
    const maxAgeSeconds = SESSION_LIFETIME_MS / 1000;
    const cookie = { name: cookieName, value: redemption.session, secure: false, maxAgeSeconds };
    c.header("Set-Cookie", sessionCookie({ ...cookie, sameSite: "Strict" }));
    // No redirect: in a chain that another program's page began, the browser would not send a strict cookie.
    return c.html(unlockedPage(assets));
  });

  app.get("/ui", (c) => c.redirect("/ui/", 303));
  app.get("/ui/", (c) => {
    const status = view.status();
    if (!accessCheck.isUnlocked(c.env.incoming) || !status.authenticated) return c.redirect("/", 303);
    const announcement = announcementText(c.req.query("done"));
    return c.html(indexPage(assets, status, view.rules(), texts.secretView, announcement));
  });

  const sendStream = (
    c: Context<Environment>,
    channel: string,
    first: readonly EventFrame[],
  ): typeof RESPONSE_ALREADY_SENT => {
    const owner = accessCheck.session(c.env.incoming);
    streams.open(c.env.outgoing, { channel, first, ...(owner === undefined ? {} : { owner }) });
    return RESPONSE_ALREADY_SENT;
  };
  app.get("/ui/sse", letInOnly, ownStreamOnly, headersOnly, async (c) => {
    const topic = c.req.query("show");
    return sendStream(c, pageChannel(topic), await live.pageFrames(topic));
  });
  app.get("/ui/sse/ssh", letInOnly, ownStreamOnly, headersOnly, async (c) => {
    const topic = c.req.query("show") ?? "remotes";
    return sendStream(c, sshChannel(topic), await live.sshFrames(topic));
  });

  // Other paths below /ui/: without access or sign-in there is a redirect to the sign-in, and no other information.
  app.get("/ui/*", async (c, next) => {
    const letIn = accessCheck.isUnlocked(c.env.incoming) && view.status().authenticated;
    if (letIn) return await next();
    // A part of a page, asked for by htmx, cannot send the page elsewhere.
    return isForPart(c) ? await letInOnly(c, next) : c.redirect("/", 303);
  });

  app.post("/ui/*", ownPageOnly, letInOnly, readableFormOnly(parts));
  app.route("/", secretPageRoutes(parts));
  app.route("/", mountRoutes(parts));
  app.route("/", ruleRoutes(parts));
  app.route("/", enrolmentRoutes(parts));
  app.route("/", remoteRoutes(parts));
  app.route("/", sshAgentRoutes(parts));
  app.route("/", peerSocketRoutes(parts));
  app.get("/ui/config", (c) => c.redirect("/ui/config/", 303));
  app.get("/ui/config/", (c) => c.html(configPage(assets, view.status(), configuration)));

  app.post("/ui/sign-out", async (c) => {
    if (signOut === undefined || !canSignOut(view.status()))
      return await problemResponse(c, parts, PROBLEMS.notSignedOut);
    await signOut();
    sessions.endAll();
    streams.closeAll();
    logger.info({ by: "page" }, "signed out");
    return c.redirect("/", 303);
  });

  app.post("/ui/copy-token", async (c) => {
    const token = signIn.token();
    if (token === undefined) return await problemResponse(c, parts, PROBLEMS.noToken);
    logger.info({ by: "page" }, "store token copied to the clipboard");
    return await copyResponse(c, parts, await clipboard.copy(token));
  });

  app.post("/ui/sync", async (c) => {
    const { job, done } = view.syncNow();
    logger.info({ job, by: "page" }, "sync requested");
    await endsSoon(done);
    return c.redirect("/ui/", 303);
  });
  return app;
}
