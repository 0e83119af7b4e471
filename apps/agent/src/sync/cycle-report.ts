import type { CycleResult } from "../status.ts";

/** Collects the results of one cycle. A rule has one entry, and a failure overrides its other results. */
export class CycleReport {
  readonly #done = new Map<string, "changed" | "unchanged">();
  readonly failures = new Map<string, string>();
  /** Path of the secret that is not stored, by rule. */
  readonly missing = new Map<string, string>();

  changed(rule: string): void {
    this.#done.set(rule, "changed");
  }

  unchanged(rule: string): void {
    this.#done.set(rule, "unchanged");
  }

  failed(rule: string, message: string): void {
    this.failures.set(rule, message);
  }

  /** @param order names of the configured rules. Rules that were removed from the configuration come before them. */
  result(order: readonly string[]): Pick<CycleResult, "changed" | "unchanged" | "failed" | "missing"> {
    const places = new Map(order.map((rule, place) => [rule, place]));
    const sorted = (rules: Iterable<string>): string[] =>
      [...rules].toSorted((a, b) => (places.get(a) ?? -1) - (places.get(b) ?? -1));
    const succeeded = (rules: Iterable<string>): string[] =>
      sorted(rules).filter((rule) => !this.failures.has(rule));
    const done = (kind: "changed" | "unchanged"): string[] =>
      succeeded(this.#done.keys()).filter((rule) => this.#done.get(rule) === kind);
    return {
      changed: done("changed"),
      unchanged: done("unchanged"),
      failed: sorted(this.failures.keys()),
      missing: succeeded(this.missing.keys()).map((rule) => ({ rule, key: this.missing.get(rule) ?? "" })),
    };
  }
}
