import { CycleRunner, type CycleRunnerParts } from "../sync/cycle-runner.ts";
import { CycleTimer } from "../sync/cycle-timer.ts";
import { Daemon, type DaemonParts } from "../sync/daemon.ts";
import { StatusReport, type StatusFacts } from "../sync/status-report.ts";
import { TargetWatch } from "../sync/target/target-watch.ts";

export interface LoopParts
  extends CycleRunnerParts, Pick<DaemonParts, "intervalMs" | "bootstrap" | "enrolments" | "watch"> {
  readonly facts: StatusFacts;
}

/** Builds the sync loop with its timer, its watch of the targets, and its status. */
export function assembleLoop(parts: LoopParts): Daemon {
  const { engine, facts, clock, logger } = parts;
  return new Daemon({
    ...parts,
    runner: new CycleRunner(parts),
    timer: new CycleTimer(clock),
    targets: new TargetWatch({ isTouched: (file) => engine.isTouched(file), clock, logger }),
    report: new StatusReport(facts, clock),
  });
}
