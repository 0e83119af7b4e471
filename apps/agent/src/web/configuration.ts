import { stringify } from "yaml";
import { asWritten, redacted } from "../config/as-written.ts";
import type { Config } from "../config/schema.ts";

/** The configuration in force, as the browser and the API may show it. */
export class ConfigurationView {
  readonly sources: readonly string[];
  /** In the form of a file, with defaults, credentials masked. */
  readonly document: unknown;

  constructor(config: Config, sources: readonly string[]) {
    this.sources = sources;
    this.document = redacted(asWritten(config));
  }

  yaml(): string {
    return stringify(this.document);
  }
}
