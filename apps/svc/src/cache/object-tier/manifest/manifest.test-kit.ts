import { randomBytes } from "node:crypto";
import { Secret, silentLogger, systemClock, type Clock } from "@devplat/base";
import type { ObjectStore } from "@devplat/object-store";
import { repositoryId } from "../../../access/repository-id.ts";
import { ObjectNames } from "../object-names.ts";
import { BucketManifestStore } from "./bucket-manifest-store.ts";
import { MemoryEpochs, type EpochSource } from "./epoch-source.ts";
import { ConditionalManifestFile, type ManifestFile } from "./manifest-file.ts";
import { ManifestKeys } from "./manifest-keys.ts";
import { ManifestMemory } from "./manifest-memory.ts";
import { ManifestReader } from "./manifest-reader.ts";
import { ManifestRefusals, type ManifestRefusal } from "./manifest-refusals.ts";
import type { ManifestContent, ManifestResponse, StoredObject } from "./manifest.ts";

export const HOST_URL = "https://code.example";
export const REPOSITORY = repositoryId("Ada", "Engine");
export const KEY = new Secret("0123456789abcdef".repeat(4));
export const OTHER_KEY = new Secret("fedcba9876543210".repeat(4));

export interface TestManifestOptions {
  readonly keys?: ManifestKeys;
  readonly epochs?: EpochSource;
  readonly writer?: string;
  readonly clock?: Clock;
  readonly hostUrl?: string;
  readonly prefix?: string;
  /** Default: manifests of a bucket with conditions. */
  readonly file?: ManifestFile;
}

/** A manifest store of one instance, with what it refuses. */
export function openManifests(store: ObjectStore, options: TestManifestOptions = {}) {
  const { keys = new ManifestKeys(KEY), epochs = new MemoryEpochs(), hostUrl = HOST_URL } = options;
  const { clock = systemClock, writer = "w1", prefix = "cache" } = options;
  const refused: ManifestRefusal[] = [];
  const refusals = new ManifestRefusals({
    logger: silentLogger,
    onRefused: (reason) => void refused.push(reason),
  });
  const names = new ObjectNames({ prefix, hostUrl, hideKey: undefined });
  const memory = new ManifestMemory(epochs);
  const { file = new ConditionalManifestFile(store, names) } = options;
  const reader = new ManifestReader({ file, hostUrl, keys, epochs, memory, refusals, clock });
  const manifests = new BucketManifestStore({
    store,
    file,
    hostUrl,
    keys,
    epochs,
    memory,
    reader,
    refusals,
    writer,
    clock,
  });
  return { manifests, epochs, names, refused, refusals };
}

/** An object of one slice with any content. */
export function someObject(name: string, length = 3): StoredObject {
  return { name, length, sha256: randomBytes(32).toString("hex"), slicesSha256: undefined };
}

export function someResponse(key = randomBytes(32).toString("hex")): ManifestResponse {
  return { key, object: someObject(`responses/${key}-w1-0`), usedAt: 1 };
}

/** A change that adds a response, and that can be applied again. */
export const adding =
  (response: ManifestResponse) =>
  (content: ManifestContent): ManifestContent =>
    content.responses.some(({ key }) => key === response.key)
      ? content
      : { ...content, responses: [...content.responses, response] };
