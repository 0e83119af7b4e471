import type { SecretStore } from "@devplat/secret-store";
import { CycleRunner, type CycleRunnerParts } from "../sync/cycle-runner.ts";
import { CycleTimer } from "../sync/cycle-timer.ts";
import { Daemon, type DaemonParts } from "../sync/daemon.ts";
import { StatusReport, type StatusFacts } from "../sync/status-report.ts";
import { StoreWatch } from "../sync/store-watch.ts";
import { TargetWatch } from "../sync/target/target-watch.ts";

export interface LoopParts
  extends CycleRunnerParts, Pick<DaemonParts, "intervalMs" | "bootstrap" | "enrolments"> {
  readonly store: SecretStore;
  readonly facts: StatusFacts;
}

/** Builds the sync loop with its timer, its watches of the store and of the targets, and its status. */
export function assembleLoop(parts: LoopParts): Daemon {
  const { engine, store, facts, clock, logger } = parts;
  return new Daemon({
    ...parts,
    runner: new CycleRunner(parts),
    timer: new CycleTimer(clock),
    targets: new TargetWatch({ isTouched: (file) => engine.isTouched(file), clock, logger }),
    watch: new StoreWatch({ store, clock, logger }),
    report: new StatusReport(facts, clock),
  });
}
