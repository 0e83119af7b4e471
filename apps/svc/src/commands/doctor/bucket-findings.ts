import { silentLogger, systemClock } from "@devplat/base";
import type { Findings, Outcome } from "@devplat/cli/findings";
import { probeStore, type ObjectStore, type ProbeRow } from "@devplat/object-store";
import { repositoryId } from "../../access/repository-id.ts";
import { objectNames, openBucket } from "../../assemble/bucket.ts";
import { objectKeys } from "../../assemble/object-keys.ts";
import { REFUSED_MANIFESTS } from "../../cache/object-tier/bucket/bucket-report.ts";
import { rowReason } from "../../cache/object-tier/bucket/bucket-remedies.ts";
import { stateOf, type BucketState } from "../../cache/object-tier/bucket/probed-store.ts";
import { MemoryEpochs } from "../../cache/object-tier/manifest/epoch-source.ts";
import type { ManifestKeys } from "../../cache/object-tier/manifest/manifest-keys.ts";
import { ManifestMemory } from "../../cache/object-tier/manifest/manifest-memory.ts";
import { ConditionalManifestFile } from "../../cache/object-tier/manifest/manifest-file.ts";
import { PointersInUse } from "../../cache/object-tier/manifest/pointers-in-use.ts";
import { PointedManifestFile } from "../../cache/object-tier/manifest/pointed-manifest-file.ts";
import { repositoryKey } from "../../coordination/repository-key.ts";
import { bucketPrefix } from "../../config/cache-folder.ts";
import { hasCommonDatabase } from "../../config/common-database.ts";
import { ManifestReader } from "../../cache/object-tier/manifest/manifest-reader.ts";
import { ManifestRefusals } from "../../cache/object-tier/manifest/manifest-refusals.ts";
import { refuseUnusableBucket } from "../../config/refusals.ts";
import type { Config } from "../../config/schema.ts";
import { databaseSettings } from "../../storage/database-settings.ts";
import { noEncryptionKey } from "../../storage/encryption-key.ts";
import { requireCurrent } from "../../storage/migration-state.ts";
import { openDatabase } from "../../storage/open-store.ts";
import type { Store } from "../../storage/store.ts";

/** Abilities without which the bucket is used all the same. */
const NOT_NEEDED: ReadonlySet<string> = new Set([
  "get with If-None-Match",
  "list of multipart uploads",
  "delete with If-Match",
]);
/** Concurrent reads of manifests. */
const CONCURRENT_READS = 8;

/** Name of this program as a writer of manifests. It writes none. */
const READER = "doctor";

/** Probes the bucket, and reads the manifest of each cached repository. */
export async function examineBucket(config: Config, findings: Findings): Promise<void> {
  if (config.cache.object_bucket === undefined) {
    await findings.attempt("bucket", async () => ({ fault: "cache.object_bucket is not set" }));
    return;
  }
  let bucket: ObjectStore | undefined;
  let keys: ManifestKeys | undefined;
  let store: Store | undefined;
  try {
    await findings.attempt("settings", async () => {
      refuseUnusableBucket(config);
      bucket = openBucket(config);
      return config.cache.object_bucket ?? "";
    });
    if (bucket === undefined) return;
    const state = await probeFindings(bucket, config, findings);
    await findings.attempt("key of manifests", async () => {
      store = await openStoreOf(config);
      keys = await objectKeys(config, store.oneTime);
      return `id ${keys.currentId}`;
    });
    if (keys === undefined || store === undefined) return;
    const [read, from, by] = [bucket, store, keys];
    await findings.attempt("manifests", async () =>
      state.kind === "usable"
        ? manifestFinding(read, from, by, { config, hasConditions: state.abilities.conditions })
        : { warning: "not read: the bucket cannot be used" },
    );
  } finally {
    await bucket?.close();
    await store?.close();
  }
}

async function probeFindings(bucket: ObjectStore, config: Config, findings: Findings): Promise<BucketState> {
  const prefix = bucketPrefix(config.cache.storage_path);
  const abilities = await probeStore(bucket, { ...(prefix !== "" && { prefix }) });
  const isPointed = !abilities.conditions && hasCommonDatabase(config);
  const state = stateOf(abilities, hasCommonDatabase(config), config.cache);
  for (const row of abilities.rows)
    await findings.attempt(row.ability, async () => abilityOutcome(row, isPointed, config, state));
  await findings.attempt("bucket", async () => {
    if (state.kind === "unusable") return { fault: `cannot be used: ${state.reason}` };
    return abilities.conditions ? "can be used" : "can be used; the database names the manifests";
  });
  return state;
}

/** @param isPointed whether a database replaces conditions on writes */
function abilityOutcome(row: ProbeRow, isPointed: boolean, { cache }: Config, state: BucketState): Outcome {
  const { ability, result, permission } = row;
  if (result === "yes") return "yes";
  const reason = permission === undefined ? rowReason(row, cache) : `the permission ${permission} is missing`;
  // The finding about the bucket as a whole has it.
  const isToldBelow = state.kind === "unusable" && state.reason === reason;
  const text = isToldBelow || reason === undefined ? result : `${result}: ${reason}`;
  const isReplaced = isPointed && result === "no" && / with If-/.test(ability);
  return NOT_NEEDED.has(ability) || isReplaced ? { warning: text } : { fault: text };
}

async function openStoreOf(config: Config): Promise<Store> {
  const { key, key_previous: previous } = config.encryption;
  const database = await openDatabase(databaseSettings(config));
  try {
    requireCurrent(await database.state());
    return await database.store(async () => {
      if (key === undefined) throw noEncryptionKey();
      return { current: key, previous };
    });
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function manifestFinding(
  bucket: ObjectStore,
  store: Store,
  keys: ManifestKeys,
  { config, hasConditions }: { readonly config: Config; readonly hasConditions: boolean },
): Promise<Outcome> {
  const epochs = new MemoryEpochs();
  const refusals = new ManifestRefusals({ logger: silentLogger, onRefused: () => undefined });
  const names = objectNames(config, keys);
  const inUse = new PointersInUse(store.manifestPointers, config.cache.object_bucket ?? "", names.root);
  const isPointed = hasCommonDatabase(config) && (!hasConditions || (await inUse.isSet()));
  const file = !isPointed
    ? new ConditionalManifestFile(bucket, names)
    : new PointedManifestFile({
        store: bucket,
        names,
        pointers: store.manifestPointers,
        keyOf: (id) => repositoryKey(config.host.url, id),
        writer: READER,
        clock: systemClock,
      });
  const reader = new ManifestReader({
    file,
    hostUrl: config.host.url,
    keys,
    epochs,
    memory: new ManifestMemory(epochs),
    refusals,
    clock: systemClock,
  });
  const ids = (await store.cachedRepositories.list()).map(({ owner, name }) => repositoryId(owner, name));
  let found = 0;
  for (let start = 0; start < ids.length; start += CONCURRENT_READS) {
    const some = ids.slice(start, start + CONCURRENT_READS);
    const read = await Promise.all(some.map(async (id) => reader.read(id)));
    found += read.filter(({ version }) => version !== undefined).length;
  }
  const all = `${found} of ${ids.length} cached repositories have one`;
  const refused = [...refusals.counts()].map(([reason, count]) => `${count} ${REFUSED_MANIFESTS[reason]}`);
  if (refused.length === 0) return all;
  const others = refusals.otherKeys();
  const otherKeys =
    others.length === 0
      ? ""
      : ` (key ${others.join(", ")}: set the same cache.object_key on all instances, or after a rotation cache.object_key_previous to that key)`;
  return { warning: `${all}; not readable: ${refused.join(", ")}${otherKeys}` };
}
