import { ConfigKeeper, type ConfigKeeperParts } from "../config/keeper.ts";
import type { EnrolmentRunner } from "../enrol/runner.ts";
import type { Host } from "../host.ts";
import type { Surface } from "../surfaces/surface.ts";
import type { Daemon } from "../sync/daemon.ts";
import { mountPlaceOf } from "../sync/mounted/mount-place.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

/** The parts of a daemon that follow its configuration, in the order in which they take it up. */
export interface ReloadedParts {
  readonly enrolments: EnrolmentRunner;
  readonly daemon: Daemon;
  readonly surfaces: Surface;
  readonly telemetry: Telemetry;
}

/** Builds the part that applies a changed configuration to a running daemon. */
export function assembleReload(
  { clock, logger, places }: Host,
  { enrolments, daemon, surfaces, telemetry }: ReloadedParts,
  source: Pick<ConfigKeeperParts, "loaded" | "load">,
): ConfigKeeper {
  return new ConfigKeeper({
    ...source,
    apply: async (config, facts) => {
      const { rules, sync } = config;
      enrolments.configure(config.enrolments, sync.interval);
      await daemon.configure({
        rules,
        intervalMs: sync.interval,
        allowedTargets: sync.allowed_targets,
        mount: mountPlaceOf(config, places.home),
        facts: { ...facts, mountpoint: config.fuse.mountpoint },
      });
      await surfaces.reconcile(config);
      await telemetry.configure(config.observability);
    },
    clock,
    logger,
  });
}
