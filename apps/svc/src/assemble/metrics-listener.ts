import { createServer } from "node:http";
import type { WebServer } from "../http/server/web-server.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/** The small listener of `metrics.listen`: `/metrics` and nothing else. Not listening yet. */
export function createMetricsListener(metrics: Metrics): WebServer {
  const server = createServer((request, response) => {
    const path = (request.url ?? "").split("?", 1)[0];
    if (path !== "/metrics" || (request.method !== "GET" && request.method !== "HEAD")) {
      response
        .writeHead(404, { "Content-Type": "text/plain; charset=utf-8" })
        .end("only GET /metrics is here\n");
      return;
    }
    metrics.render().then(
      ({ contentType, body }) => {
        response.writeHead(200, { "Content-Type": contentType, "X-Content-Type-Options": "nosniff" });
        response.end(request.method === "HEAD" ? undefined : body);
      },
      () => response.writeHead(500, { "Content-Type": "text/plain" }).end("the metrics cannot be rendered\n"),
    );
  });
  return {
    server,
    closeIdle: () => server.closeIdleConnections(),
    closeAll: () => server.closeAllConnections(),
  };
}
