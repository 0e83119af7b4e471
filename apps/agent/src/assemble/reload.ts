import { ConfigKeeper, type ConfigKeeperParts } from "../config/keeper.ts";
import type { EnrolmentRunner } from "../enrol/runner.ts";
import type { Host } from "../host.ts";
import type { Surface } from "../surfaces/surface.ts";
import type { Daemon } from "../sync/daemon.ts";

/** The parts of a daemon that follow its configuration, in the order in which they take it up. */
export interface ReloadedParts {
  readonly enrolments: EnrolmentRunner;
  readonly daemon: Daemon;
  readonly surfaces: Surface;
}

/** Builds the part that applies a changed configuration to a running daemon. */
export function assembleReload(
  { clock, logger }: Host,
  { enrolments, daemon, surfaces }: ReloadedParts,
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
        facts,
      });
      await surfaces.reconcile(config);
    },
    clock,
    logger,
  });
}
