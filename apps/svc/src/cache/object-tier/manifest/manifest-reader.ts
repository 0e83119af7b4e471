import type { Clock } from "@devplat/base";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { EpochSource } from "./epoch-source.ts";
import type { ManifestFile } from "./manifest-file.ts";
import type { ManifestKeys } from "./manifest-keys.ts";
import type { ManifestMemory, Remembered } from "./manifest-memory.ts";
import type { ManifestRefusals } from "./manifest-refusals.ts";
import type { Manifest } from "./manifest.ts";
import { openManifest, type OpenedManifest } from "./sealed-manifest.ts";

export interface ManifestReaderParts {
  readonly file: ManifestFile;
  /** `host.url` */
  readonly hostUrl: string;
  readonly keys: ManifestKeys;
  readonly epochs: EpochSource;
  readonly memory: ManifestMemory;
  readonly refusals: ManifestRefusals;
  readonly clock: Pick<Clock, "monotonic">;
}

/** Reads manifests from the bucket into the memory, and decides which of them are used. */
export class ManifestReader {
  readonly #parts: ManifestReaderParts;
  readonly #running = new Map<string, Promise<Remembered>>();

  constructor(parts: ManifestReaderParts) {
    this.#parts = parts;
  }

  /** Asks the bucket. Callers that come while a request runs share it. @throws ObjectStoreError */
  read(id: RepositoryId): Promise<Remembered> {
    let running = this.#running.get(id.key);
    if (running === undefined) {
      running = this.readAgain(id).finally(() => this.#running.delete(id.key));
      this.#running.set(id.key, running);
    }
    return running;
  }

  /** Asks the bucket with a request that begins now. @throws ObjectStoreError */
  async readAgain(id: RepositoryId, isSecond = false): Promise<Remembered> {
    const { file, memory, clock } = this.#parts;
    const before = memory.get(id);
    const askedAt = clock.monotonic();
    // Bytes that are not a manifest may have come so over the network. They are read again each time.
    const knownVersion =
      before?.stored === undefined && before?.foreign === undefined ? undefined : before.version;
    const found = await file.read(id, knownVersion);
    if (found.kind === "absent") {
      this.#parts.refusals.accept(id);
      return this.#remember(id, before, { ...NOTHING, askedAt });
    }
    if (found.kind === "same" && before !== undefined)
      return this.#remember(id, before, { ...before, askedAt });
    const { bytes, version } = found.kind === "found" ? found : { bytes: undefined, version: undefined };
    const opened: OpenedManifest =
      bytes === undefined
        ? { kind: "malformed", reason: "it is too large, or its object is gone" }
        : openManifest(bytes, { hostUrl: this.#parts.hostUrl, id }, this.#parts.keys);
    // As with slices: wrong bytes are read once more. Otherwise a change could replace a manifest that is right in the bucket.
    if (!isSecond && (opened.kind === "malformed" || opened.kind === "forged"))
      return await this.readAgain(id, true);
    // A write or another read may have ended while the response was on its way. An older response says nothing then.
    const known = memory.get(id);
    if (known !== undefined && known !== before && !isNewer(opened, known.newest)) return known;
    const read = { version, askedAt, bytes: bytes?.length ?? 0 };
    return this.#remember(id, known, await this.#judge(id, opened, known?.newest, read));
  }

  /** Decides about what was read. */
  async #judge(
    id: RepositoryId,
    opened: OpenedManifest,
    newest: Manifest | undefined,
    read: Pick<Remembered, "version" | "askedAt" | "bytes">,
  ): Promise<Remembered> {
    const { refusals, epochs } = this.#parts;
    const unusable = { ...NOTHING, ...read, newest, usable: false };
    if (opened.kind !== "manifest") {
      const keyId = opened.kind === "other_key" ? opened.keyId : undefined;
      const fault = opened.kind === "malformed" ? opened.reason : undefined;
      refusals.refuse(id, opened.kind, {
        ...(keyId !== undefined && { keyId }),
        ...(fault !== undefined && { fault }),
      });
      const isForeign = opened.kind === "other_key" || opened.kind === "newer_format";
      return { ...unusable, foreign: isForeign ? opened.kind : undefined };
    }
    const { manifest: stored, hmac } = opened;
    if (stored.epoch < epochs.of(id)) {
      refusals.refuse(id, "old_epoch");
      return { ...unusable, stored, hmac };
    }
    await epochs.adopt(id, stored.epoch);
    if (newest !== undefined && newest.epoch === stored.epoch && newest.generation > stored.generation) {
      refusals.refuse(id, "old_generation");
      return { ...unusable, stored, hmac, usable: true };
    }
    refusals.accept(id);
    return { ...unusable, stored, hmac, newest: stored, usable: true };
  }

  /** @param before the entry that the decision is based on. If it is another one now, that one stays. */
  #remember(id: RepositoryId, before: Remembered | undefined, next: Remembered): Remembered {
    const known = this.#parts.memory.get(id);
    if (known !== undefined && known !== before) return known;
    this.#parts.memory.set(id, next);
    return next;
  }
}

/** There is no manifest. */
export const NOTHING: Remembered = {
  version: undefined,
  stored: undefined,
  hmac: undefined,
  newest: undefined,
  foreign: undefined,
  usable: true,
  askedAt: 0,
  bytes: 0,
};

function isNewer(opened: OpenedManifest, known: Manifest | undefined): boolean {
  if (opened.kind !== "manifest") return false;
  const { epoch, generation } = opened.manifest;
  if (known === undefined) return true;
  return epoch > known.epoch || (epoch === known.epoch && generation > known.generation);
}
