import { duration } from "@devplat/config";
import { z } from "zod";
import { ownSocketPath } from "./own-socket-path.ts";
import { secretFolderPath } from "./secret-folder-path.ts";

/** A mount or volume that caches longer than this shows credentials that have been replaced; in milliseconds. */
export const MAX_CACHE_TTL_MS = 10 * 60_000;
const MIN_CACHE_TTL_MS = 1000;

/** The container-volume plugin. */
export const dockerSection = z.strictObject({
  enabled: z.boolean().default(false),
  /** Default: `docker.sock` in the runtime folder. */
  socket: ownSocketPath.optional(),
  /** Default: `volumes` in the runtime folder. */
  volume_dir: ownSocketPath.optional(),
  /** Interval between looks at the store while it reports no changes. */
  cache_ttl: duration({ min: MIN_CACHE_TTL_MS, max: MAX_CACHE_TTL_MS }).prefault("1m"),
  /**
   * Folders whose secrets volumes may have; `/` is all. Default: none for an engine that runs as root, because everybody who
   * may use it can ask; all for an engine of the user.
   */
  paths: z.array(z.union([z.literal("/"), secretFolderPath])).optional(),
  /** Whether containers with the label `daemon.on-change` are told after a change. */
  on_change: z.boolean().default(false),
});

export type DockerSection = z.infer<typeof dockerSection>;
