import { stringify } from "yaml";
import { asWritten, redacted } from "./as-written.ts";
import { writeRegistryFile } from "./registry-file.ts";
import { REGISTRY_ROOT, toRegistry } from "./registry-values.ts";
import type { LoadedConfig } from "./load.ts";

/** The configuration in force, as the browser and the API may show it. */
export class ConfigurationView {
  readonly #current: () => Pick<LoadedConfig, "config" | "sources">;

  /** @param current the configuration that applies now */
  constructor(current: () => Pick<LoadedConfig, "config" | "sources">) {
    this.#current = current;
  }

  /** The files that it was read from. */
  get sources(): readonly string[] {
    return this.#current().sources;
  }

  /** In the form of a file, with defaults, credentials masked. */
  get document(): unknown {
    return redacted(asWritten(this.#current().config));
  }

  yaml(): string {
    return stringify(this.document);
  }

  /** As a Windows registry file, like `agent reg-export`. */
  registry(): Buffer {
    return writeRegistryFile(REGISTRY_ROOT, toRegistry(this.document as Record<string, unknown>));
  }
}
