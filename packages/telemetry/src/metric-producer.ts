import { ValueType, type HrTime } from "@opentelemetry/api";
import { hrTime } from "@opentelemetry/core";
import type { Resource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  DataPointType,
  type CollectionResult,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import type { MetricFamily } from "./metric-family.ts";

export interface MetricSource {
  readonly scope: { readonly name: string; readonly version: string };
  readonly resource: Resource;
  /** Reads the metrics of this moment. */
  readonly read: () => Promise<readonly MetricFamily[]>;
}

/** Hands the metrics of a program to the SDK, under the names that they have in Prometheus. */
export class FamilyProducer implements MetricProducer {
  readonly #source: MetricSource;
  readonly #startTime = hrTime();

  constructor(source: MetricSource) {
    this.#source = source;
  }

  async collect(): Promise<CollectionResult> {
    const { scope, resource, read } = this.#source;
    const result = (metrics: MetricData[], errors: unknown[]): CollectionResult => ({
      resourceMetrics: { resource, scopeMetrics: metrics.length === 0 ? [] : [{ scope, metrics }] },
      errors,
    });
    try {
      const endTime = hrTime();
      return result(
        (await read()).map((family) => metricData(family, this.#startTime, endTime)),
        [],
      );
    } catch (error) {
      return result([], [error]);
    }
  }
}

function metricData(
  { name, help, type, samples }: MetricFamily,
  startTime: HrTime,
  endTime: HrTime,
): MetricData {
  const descriptor = { name, description: help, unit: "", valueType: ValueType.DOUBLE };
  const dataPoints = samples.map(({ labels, value }) => ({
    startTime,
    endTime,
    attributes: { ...labels },
    value,
  }));
  const aggregationTemporality = AggregationTemporality.CUMULATIVE;
  return type === "gauge"
    ? { descriptor, aggregationTemporality, dataPointType: DataPointType.GAUGE, dataPoints }
    : { descriptor, aggregationTemporality, dataPointType: DataPointType.SUM, dataPoints, isMonotonic: true };
}
