import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  type Sampler,
} from "@opentelemetry/sdk-trace";
import type { Environment } from "./otlp-settings.ts";

/** `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`; the default is what the caller decided, else always. */
export function samplerOf(environment: Environment): Sampler {
  const given = Number(environment["OTEL_TRACES_SAMPLER_ARG"] ?? "1");
  const ratio = new TraceIdRatioBasedSampler(given >= 0 && given <= 1 ? given : 1);
  const roots: Readonly<Record<string, Sampler>> = {
    always_on: new AlwaysOnSampler(),
    always_off: new AlwaysOffSampler(),
    traceidratio: ratio,
  };
  const name = environment["OTEL_TRACES_SAMPLER"] ?? "parentbased_always_on";
  const root = roots[name.replace(/^parentbased_/, "")] ?? new AlwaysOnSampler();
  return name.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}
