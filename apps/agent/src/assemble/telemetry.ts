import type { Host } from "../host.ts";
import type { OpenStreams } from "../surfaces/http-api/open-streams.ts";
import type { DaemonView } from "../status.ts";
import { Telemetry } from "../telemetry/telemetry.ts";
import { VERSION } from "../version.ts";

/** Builds the export of metrics and spans. It is off until it is configured. */
export function assembleTelemetry(
  { environment, logger }: Host,
  view: Pick<DaemonView, "status">,
  openStreams: OpenStreams,
): Telemetry {
  return new Telemetry({
    environment,
    version: VERSION,
    logger,
    metrics: async () => {
      const { metricFamilies } = await import("../surfaces/http-api/status/metrics.ts");
      return metricFamilies(view.status(), openStreams.size);
    },
  });
}
