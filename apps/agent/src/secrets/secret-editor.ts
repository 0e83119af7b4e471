import type { Logger } from "@devplat/base";
import { SecretStoreError, type Fields, type SecretChange } from "@devplat/secret-store";
import type { ObservedStore } from "./observed-store.ts";
import type { WritePolicy } from "./write-policy.ts";

/** Surface of the request, for the log. */
export type Surface = "api" | "page" | "mount";

export interface SecretEditorParts {
  readonly store: ObservedStore;
  readonly policy: WritePolicy;
  readonly logger: Logger;
  /** Called after every change of a secret, so that its rules need not wait for the next poll. */
  readonly onChange: (change: SecretChange) => void;
}

/**
 * Changes secrets for the API and the pages. The caller has asked the policy; nothing is overwritten that the caller has
 * not seen. The log gets the path only, never a field's name or value.
 */
export class SecretEditor {
  readonly store: ObservedStore;
  readonly policy: WritePolicy;
  readonly logger: Logger;
  readonly #onChange: (change: SecretChange) => void;

  constructor(parts: SecretEditorParts) {
    this.store = parts.store;
    this.policy = parts.policy;
    this.logger = parts.logger;
    this.#onChange = parts.onChange;
  }

  /** The same for one task, whose requests to the store end after this time; see {@link ObservedStore.within}. */
  within(ms: number): SecretEditor {
    const { policy, logger } = this;
    return new SecretEditor({ store: this.store.within(ms), policy, logger, onChange: this.#onChange });
  }

  /** Writes where nothing exists. @returns the version; undefined if something is there, so that of two creates one fails */
  async create(path: string, fields: Fields, by: Surface): Promise<number | undefined> {
    try {
      return await this.#write(path, fields, 0, by);
    } catch (error) {
      if (error instanceof SecretStoreError && error.code === "version_conflict") return undefined;
      throw error;
    }
  }

  /**
   * Replaces the whole document. @returns the new version
   * @throws SecretStoreError `version_conflict` if `version` is not the newest
   */
  replace(path: string, fields: Fields, version: number, by: Surface): Promise<number> {
    return this.#write(path, fields, version, by);
  }

  /** Removes the secret with every version. @throws SecretStoreError `not_found` */
  async remove(path: string, by: Surface): Promise<void> {
    await this.store.delete(path);
    this.logger.info({ path, by }, "secret deleted");
    this.#onChange({ path, kind: "deleted" });
  }

  async #write(path: string, fields: Fields, ifVersion: number, by: Surface): Promise<number> {
    const { version } = await this.store.write(path, fields, { ifVersion });
    this.logger.info({ path, version, by }, ifVersion === 0 ? "secret created" : "secret written");
    this.#onChange({ path, kind: "written" });
    return version;
  }
}
