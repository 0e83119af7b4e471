import type { MetricFamily, MetricSample } from "@devplat/telemetry";

/** Metrics in the Prometheus text format, version 0.0.4. */
export function prometheusText(families: readonly MetricFamily[]): string {
  const lines = families.flatMap(({ name, help, type, samples }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(({ labels, value }) => `${name}${labelText(labels)} ${value}`),
  ]);
  return `${lines.join("\n")}\n`;
}

function labelText(labels: MetricSample["labels"]): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
