import { OPENAPI_PATH } from "@devplat/web-kit";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { checkPath } from "@devplat/secret-store";
import { Hono, type Context, type MiddlewareHandler } from "hono";
import { AgentError } from "../../errors.ts";
import { problemResponse } from "./problem-response.ts";
import type { ApiParts, Environment } from "./environment.ts";
import { headersOnly } from "./headers-only.ts";
import { isFromForeignPage } from "./request-checks.ts";
import { mountRoutes } from "./mount-routes.ts";
import { metricFamilies } from "./status/metrics.ts";
import { prometheusText } from "./status/prometheus-text.ts";
import { peerRoutes } from "./peer-routes.ts";
import { peerSocketApiRoutes } from "./peer-socket-routes.ts";
import { PROBLEMS } from "./problems/problem.ts";
import { remoteRoutes } from "./remote-routes.ts";
import { secretRoutes } from "./secret-routes.ts";
import { volumeRoutes } from "./volume-routes.ts";
import { sshAgentRoutes } from "./ssh-agent-routes.ts";
import { API_CHANNEL, statusDocument } from "./status/status-document.ts";
import { VERSION } from "../../version.ts";

/** The JSON API below /api/, and /metrics. All responses except secrets come from memory. */
export function apiRoutes(parts: ApiParts): Hono<Environment> {
  const { view, accessCheck, csrf, streams, live, logger, signIn, configuration, surface, openLink } = parts;
  const app = new Hono<Environment>();

  const unlockedOnly: MiddlewareHandler<Environment> = async (c, next) => {
    if (isFromForeignPage(c.env.incoming)) return problemResponse(c, PROBLEMS.originRefused);
    if (!accessCheck.isUnlocked(c.env.incoming)) return problemResponse(c, PROBLEMS.unlockRequired);
    return await next();
  };
  const signedInOnly: MiddlewareHandler<Environment> = async (c, next) => {
    if (!view.status().authenticated) return problemResponse(c, PROBLEMS.notSignedIn);
    return await next();
  };
  const withCsrfToken: MiddlewareHandler<Environment> = async (c, next) => {
    if (!csrf.redeem(c.req.header("X-CSRF-Token"))) return problemResponse(c, PROBLEMS.csrfRefused);
    return await next();
  };

  // Before the Origin check of the other routes: a page of this daemon under another loopback name may request these.
  app.route("/", peerRoutes(parts));
  app.use("/api/*", unlockedOnly);
  app.use("/metrics", unlockedOnly);

  app.get("/api/v1/status", (c) => c.json(statusDocument(view.status())));
  app.get("/api/v1/csrf", headersOnly, (c) => c.json({ token: csrf.issue() }));
  app.get("/api/v1/rules", signedInOnly, (c) => c.json({ rules: view.rules() }));

  // Made for the first request, so that a daemon without such a request holds no schemas in memory.
  app.get(OPENAPI_PATH, async (c) => {
    const { apiDocument } = await import("./openapi.ts");
    return c.json(apiDocument(VERSION));
  });

  app.get("/api/v1/token", signedInOnly, headersOnly, async (c) => {
    const token = signIn.token();
    if (token === undefined) return problemResponse(c, PROBLEMS.noToken);
    logger.info({ by: surface }, "store token handed out");
    return c.json({ token: token.reveal(), expires_at: view.status().auth.expires_at });
  });

  app.get("/api/v1/config", signedInOnly, (c) => {
    return c.json({ sources: configuration.sources, config: configuration.document as object });
  });
  app.get("/api/v1/config/download", signedInOnly, async (c) => {
    switch (c.req.query("format") ?? "yaml") {
      case "yaml":
        return c.body(
          configuration.yaml(),
          200,
          attachment("application/yaml; charset=utf-8", "config.yaml"),
        );
      case "reg":
        return await registryFile(c);
      default:
        return problemResponse(c, PROBLEMS.formatUnknown);
    }
  });

  async function registryFile(c: Context<Environment>): Promise<Response> {
    try {
      const file = new Uint8Array(configuration.registry());
      return c.body(file, 200, attachment("text/plain; charset=utf-16le", "config.reg"));
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      // It names the key alone.
      return problemResponse(c, { detail: `${error.message}.`, code: "bad_request" });
    }
  }

  app.use("/api/v1/secrets/*", signedInOnly);
  app.route("/", secretRoutes(parts, withCsrfToken));

  app.route("/", remoteRoutes(parts, withCsrfToken));
  app.route("/", peerSocketApiRoutes(parts, withCsrfToken));
  app.route("/", sshAgentRoutes(parts, withCsrfToken));
  app.route("/", mountRoutes(parts, withCsrfToken));
  app.route("/", volumeRoutes(parts, withCsrfToken));

  app.post("/api/v1/sync", signedInOnly, withCsrfToken, async (c) => {
    const secret = c.req.query("secret");
    if (secret !== undefined) {
      checkPath(secret);
      view.secretChanged(secret);
    }
    const { job, done } = view.syncNow();
    logger.info({ job, by: surface }, "sync requested");
    if (c.req.query("wait") !== "true") {
      // A client that does not wait reads the result from the status. The cycle logs its own failure.
      done.catch(() => undefined);
      return c.json({ job }, 202);
    }
    try {
      return c.json({ job, ...(await done) });
    } catch {
      return problemResponse(c, PROBLEMS.syncFailed);
    }
  });

  app.get("/api/v1/events", signedInOnly, headersOnly, (c) => {
    const owner = accessCheck.session(c.env.incoming);
    streams.open(c.env.outgoing, {
      channel: API_CHANNEL,
      first: live.apiFrames(),
      ...(owner === undefined ? {} : { owner }),
    });
    return RESPONSE_ALREADY_SENT;
  });

  // `agent open`: a one-time link for the user's browser.
  app.post("/api/v1/unlock", withCsrfToken, async (c) => {
    if (openLink === undefined) return problemResponse(c, PROBLEMS.noWebUi);
    const { url, expiresAt } = openLink();
    return c.json({ url, expires_at: new Date(expiresAt).toISOString() }, 201);
  });

  app.get("/metrics", (c) =>
    c.body(prometheusText(metricFamilies(view.status(), parts.openStreams.size)), 200, {
      "Content-Type": "text/plain; version=0.0.4; charset=utf-8",
    }),
  );
  return app;
}

function attachment(type: string, filename: string): Record<string, string> {
  return { "Content-Type": type, "Content-Disposition": `attachment; filename="${filename}"` };
}
