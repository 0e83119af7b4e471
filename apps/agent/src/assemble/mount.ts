import type { StoreParts } from "./store.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Host } from "../host.ts";
import { CachedSecrets } from "../secrets/folder/cached-secrets.ts";
import { SecretEditor } from "../secrets/secret-editor.ts";
import { WritePolicy } from "../secrets/write-policy.ts";
import { FilesystemMount } from "../surfaces/mount/filesystem-mount.ts";
import { LazyUnmounter } from "../surfaces/mount/lazy-unmounter.ts";
import { MountRequests } from "../surfaces/mount/mount-requests.ts";
import { mountHelperSocket, mountIdentity, mountpointOf } from "../surfaces/mount/mount-status.ts";
import { MOUNT_SERVER, ownFastProgram } from "../own-program.ts";
import type { MountedFiles } from "../sync/mounted/mounted-files.ts";
import { noteOwnWrite, type OwnWritesParts } from "./own-writes.ts";
import type { StoreWatch } from "../sync/store-watch.ts";

/** Concurrent requests of the mount to the store. */
const PARALLEL = 16;

/** The parts of a daemon that its mount uses. */
export interface MountFoundation extends Pick<StoreParts, "store"> {
  /** The configuration as it applies now. */
  readonly current: () => LoadedConfig;
  readonly changes: StoreWatch;
  readonly mounted: MountedFiles;
  readonly daemon: OwnWritesParts["daemon"];
}

/** Builds the mount. Only a daemon with `fuse.enabled` loads this file. */
export function assembleMount(
  host: Host,
  { store, current, changes, mounted, daemon }: MountFoundation,
): FilesystemMount {
  const { clock, logger, places } = host;
  const secrets = new CachedSecrets({ store, changes, clock }, { ttlMs: 0, parallel: PARALLEL });
  const owned = (): readonly string[] => Object.keys(current().config.enrolments);
  // Another value needs another mount. Until then, this one stores what was written.
  const mayWrite = current().config.fuse.read_write;
  const editor = new SecretEditor({
    store,
    // Where the mount may write, MountRequests decides.
    policy: new WritePolicy([], owned),
    logger,
    onChange: noteOwnWrite({ changes, daemon }),
  });
  const requests = new MountRequests({
    secrets,
    editor,
    isOwned: (path) => owned().includes(path),
    mayWrite,
    rendered: mounted,
    logger,
  });
  const helper = mountHelperSocket(places);
  return new FilesystemMount({
    command: ownFastProgram([MOUNT_SERVER]),
    requests,
    changes,
    unmounter: new LazyUnmounter({ identity: mountIdentity(), helper, clock, logger }),
    settings: () => {
      const { config } = current();
      const { layout, cache_ttl: cacheTtlMs } = config.fuse;
      const mountpoint = mountpointOf(config, places);
      return { mountpoint, helper, mayWrite, layout, cacheTtlMs, rendered: mounted.shown(), owned: owned() };
    },
    clock,
    logger,
  });
}
