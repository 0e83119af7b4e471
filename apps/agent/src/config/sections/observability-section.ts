import { duration } from "@devplat/config";
import { z } from "zod";
import { httpUrl } from "./store-section.ts";

/** Exporting OpenTelemetry is not worth doing more often than this, in milliseconds. */
const MIN_EXPORT_INTERVAL_MS = 10_000;

/** Metrics and traces by OpenTelemetry's OTLP. */
export const observabilitySection = z
  .strictObject({
    enabled: z.boolean().default(false),
    /** Address of the collector, to which the paths `/v1/metrics` and `/v1/traces` are added. */
    endpoint: httpUrl.optional(),
    protocol: z.enum(["http/protobuf", "http/json"]).default("http/protobuf"),
    headers: z.record(z.string().min(1), z.string()).default({}),
    service_name: z.string().min(1).default("agent"),
    interval: duration({ min: MIN_EXPORT_INTERVAL_MS }).prefault("1m"),
  })
  .superRefine(({ enabled, endpoint }, context) => {
    if (!enabled || endpoint !== undefined) return;
    const message = "required for enabled: true, such as http://127.0.0.1:4318";
    context.addIssue({ code: "custom", path: ["endpoint"], message });
  });

export type ObservabilitySection = z.infer<typeof observabilitySection>;
