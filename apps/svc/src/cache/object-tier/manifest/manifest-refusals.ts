import type { Logger } from "@devplat/base";
import type { RepositoryId } from "../../../access/repository-id.ts";

/**
 * Reason why a manifest is not used.
 * - `other_key`, `newer_format`, `forged`, `malformed`: see OpenedManifest.
 * - `old_epoch`: the repository was purged since.
 * - `old_generation`: this process has seen a newer one, which counts.
 */
export type ManifestRefusal =
  | "other_key"
  | "newer_format"
  | "forged"
  | "malformed"
  | "old_epoch"
  | "old_generation";

const MESSAGES: Readonly<Record<ManifestRefusal, string>> = {
  other_key:
    "the manifest was written with another key: set the same cache.object_key on all instances. After a rotation, set " +
    "cache.object_key_previous to the former key, or purge the repository",
  newer_format: "a newer version of this program wrote the manifest: this instance does not use it",
  forged: "the manifest does not have the HMAC of its content: somebody else wrote to the bucket",
  malformed: "the object is not a manifest: somebody else wrote to the bucket",
  old_epoch: "the manifest is from before the last purge: it is not used",
  old_generation: "the bucket shows an older manifest than before: the newer one is written again",
};

export interface ManifestRefusalParts {
  readonly logger: Logger;
  /** Counts each refused manifest. */
  readonly onRefused: (reason: ManifestRefusal) => void;
}

/** Manifests that are not used: one log line for each, and the repositories that have such a manifest now. */
export class ManifestRefusals {
  readonly #parts: ManifestRefusalParts;
  readonly #refused = new Map<string, { readonly reason: ManifestRefusal; readonly keyId?: string }>();

  constructor(parts: ManifestRefusalParts) {
    this.#parts = parts;
  }

  /** @param keyId only with `other_key` */
  refuse(id: RepositoryId, reason: ManifestRefusal, detail: { keyId?: string; fault?: string } = {}): void {
    this.#refused.set(id.key, {
      reason,
      ...(detail.keyId !== undefined && { keyId: detail.keyId }),
    });
    this.#parts.onRefused(reason);
    const fields = {
      repo: id.key,
      reason,
      ...(detail.keyId !== undefined && { key_id: detail.keyId }),
      ...(detail.fault !== undefined && { fault: detail.fault }),
    };
    this.#parts.logger.warn(fields, MESSAGES[reason]);
  }

  /** The repository has a manifest that is used, or none. */
  accept(id: RepositoryId): void {
    this.#refused.delete(id.key);
  }

  /** Number of repositories by the reason of their refused manifest. */
  counts(): ReadonlyMap<ManifestRefusal, number> {
    const counts = new Map<ManifestRefusal, number>();
    for (const { reason } of this.#refused.values()) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    return counts;
  }

  /** Ids of keys that are not here. */
  otherKeys(): readonly string[] {
    return [...new Set([...this.#refused.values()].flatMap(({ keyId }) => keyId ?? []))].toSorted();
  }
}
