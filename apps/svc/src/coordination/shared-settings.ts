import { hash } from "node:crypto";
import { z } from "zod";
import { bucketPrefix } from "../config/cache-folder.ts";
import type { Config } from "../config/schema.ts";
import type { InstanceRecord } from "../storage/coordination-store.ts";

/** Hex digits of a digest. They tell values apart and say little about them. */
const DIGEST_DIGITS = 16;

const digestsSchema = z.record(z.string(), z.string());

/**
 * Digest of each setting that all instances on one database must have in common to share the data in the bucket, as JSON. The
 * instances compare them. Who can read the database knows more than these values, so the digests have no key.
 */
export function settingsDigests({ cache, host }: Pick<Config, "cache" | "host">): string {
  const bucket = cache.enabled ? cache.object_bucket : undefined;
  const settings: Readonly<Record<string, string>> = {
    // As text: names in the bucket are digests of it.
    "host.url": host.url,
    "cache.object_bucket": bucket ?? "",
    ...(bucket !== undefined && {
      "cache.object_endpoint": addressOf(cache),
      "cache.storage_path": bucketPrefix(cache.storage_path),
      "cache.object_hide_names": String(cache.object_hide_names),
    }),
  };
  const digests = Object.entries(settings).map(([key, value]) => [
    key,
    hash("sha256", `${key}\0${value}`, "hex").slice(0, DIGEST_DIGITS),
  ]);
  return JSON.stringify(Object.fromEntries(digests));
}

/** Address of the store. With an endpoint the region is part of signatures only. */
function addressOf({ object_endpoint: endpoint, object_region: region }: Config["cache"]): string {
  return endpoint === undefined ? `region ${region}` : new URL(endpoint).origin;
}

/** Part of the record of an instance that says with which bucket and key it works. */
type ComparedInstance = Pick<InstanceRecord, "settingsDigests" | "manifestKeyId">;

/** Keys of the settings in which two instances differ, as far as both have reported them. Ordered by name. */
export function differingSettings(one: ComparedInstance, other: ComparedInstance): readonly string[] {
  const [first, second] = [one, other].map(({ settingsDigests: text }) => readDigests(text));
  const differing = Object.keys(first!).filter(
    (key) => second![key] !== undefined && first![key] !== second![key],
  );
  const hasOtherKey =
    one.manifestKeyId !== undefined &&
    other.manifestKeyId !== undefined &&
    one.manifestKeyId !== other.manifestKeyId;
  return [...differing, ...(hasOtherKey ? ["cache.object_key"] : [])].toSorted();
}

/** An earlier version reported none. Text that a newer version writes in another form is none, too. */
function readDigests(text: string | undefined): Readonly<Record<string, string>> {
  try {
    return digestsSchema.parse(JSON.parse(text ?? "{}"));
  } catch {
    return {};
  }
}
