import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { SECURITY_HEADERS, type Assets } from "@devplat/web-kit";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { Logger } from "@devplat/base";
import { Hono } from "hono";
import type { PushReceiver } from "../webhooks/push-receiver.ts";
import { addDeviceEndpoints } from "../admin-api/device.ts";
import { DATABASE_RETRY_SECONDS, problemOf, problemResponse, INTERNAL } from "../http/request/problem.ts";
import { addOperations } from "../admin-api/router.ts";
import { requireAccess } from "../administration/permission.ts";
import { requestFacts } from "../http/request/management-client.ts";
import type { Readiness } from "../readiness.ts";
import type { Operation } from "../admin-api/operation.ts";
import { addAdminUi, type AdminUiParts } from "../admin-ui/routes.ts";

/** A year: the path of an asset holds a digest of its content. */
const ASSET_CACHE = "public, max-age=31536000, immutable";

export interface ManagementOptions {
  readonly operations: readonly Operation[];
  readonly ui: AdminUiParts;
  readonly assets: Assets;
  readonly renderMetrics: () => Promise<{ readonly contentType: string; readonly body: string }>;
  /** Whether /metrics needs no credential. */
  readonly metricsPublic: boolean;
  readonly readiness: Readiness;
  /** Only loopback Hosts and the base address are answered (development mode: no login protects it). */
  readonly ownHostsOnly: boolean;
  readonly audit: AuditTrail;
  readonly logger: Logger;
  readonly pushReceiver: PushReceiver;
}

function onlyGet(path: string): Response {
  return problemResponse({
    code: "method_not_allowed",
    detail: `${path} takes GET, HEAD`,
    headers: { Allow: "GET, HEAD" },
  });
}

/** Everything on the management surface that is not git: health, metrics, API, pages. */
export function managementListener(
  options: ManagementOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  const { assets, ui, logger } = options;
  const { authenticator, address } = ui;
  const app = new Hono();

  app.use(async (context, next) => {
    if (options.ownHostsOnly && !address.isOwnHost(context.req.header("host"))) {
      // A foreign page whose name was pointed at this machine (DNS rebinding) must find nothing here.
      context.res = problemResponse({
        code: "misdirected",
        detail: "In development mode only loopback names and server.base_url are answered",
      });
    } else await next();
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) {
      if (!context.res.headers.has(name)) context.res.headers.set(name, value);
    }
  });

  app.get("/healthz", (context) => context.text("ok\n"));
  app.get("/readyz", async (context) => {
    const { require } = context.req.query();
    if (require !== undefined && require !== "database")
      return problemResponse({ code: "bad_parameter", detail: "The parameter require takes only: database" });
    const state = await options.readiness.look(require === "database");
    if (state.isReady) return context.text(["ready", ...state.notes].map((line) => `${line}\n`).join(""));
    return context.text(`not ready: ${state.reason}\n`, 503, { "Retry-After": DATABASE_RETRY_SECONDS });
  });

  app.get("/metrics", async (context) => {
    if (!options.metricsPublic) {
      requireAccess(await authenticator.identify(requestFacts(context)), "admin");
    }
    const { contentType, body } = await options.renderMetrics();
    return context.body(body, 200, { "Content-Type": contentType });
  });

  app.get("/static/svc-seed", async (context) => {
    const { seedScript } = await import("../seed-client/script.ts");
    // The address has no digest: people write it into their scripts.
    return context.body(seedScript(), 200, {
      "Content-Type": "text/x-shellscript; charset=utf-8",
      "Cache-Control": "no-cache",
    });
  });
  app.get("/static/*", (context) => {
    const asset = assets.find(context.req.path);
    if (asset === undefined) return context.notFound();
    return context.body(new Uint8Array(asset.body), 200, {
      "Content-Type": asset.type,
      "Cache-Control": ASSET_CACHE,
    });
  });

  for (const path of ["/healthz", "/readyz", "/metrics"]) app.all(path, () => onlyGet(path));

  app.get("/", (context) => context.redirect("/admin", 302));
  app.get("/admin/", (context) => context.redirect("/admin", 302));
  addOperations(app, options.operations, { authenticator, audit: options.audit, logger });
  options.pushReceiver.addTo(app);
  addDeviceEndpoints(app, { flow: ui.deviceFlow, limits: ui.limits, address });
  addAdminUi(app, ui);

  app.notFound(() => problemResponse({ code: "no_such_path", detail: "Nothing is at this path" }));
  app.onError((error) => {
    const problem = problemOf(error);
    if (problem === undefined) logger.error({ err: error }, "a management request failed");
    return problemResponse(problem ?? INTERNAL);
  });

  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  return (request, response) => void listener(request, response);
}
