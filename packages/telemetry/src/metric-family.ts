/** One value of a metric. */
export interface MetricSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric with all its values, as Prometheus and OTLP both show it. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter";
  readonly samples: readonly MetricSample[];
}
