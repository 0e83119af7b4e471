import type { Logger } from "@devplat/base";
import type { MetricFamily } from "@devplat/telemetry";

export interface TelemetryParts {
  readonly environment: NodeJS.ProcessEnv;
  readonly version: string;
  readonly logger: Logger;
  /** The metrics of this moment, the same as those at `/metrics`. */
  readonly metrics: () => Promise<readonly MetricFamily[]>;
}
