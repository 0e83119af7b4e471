import type { LoopMonitor } from "@devplat/base/loop-monitor";
import { CycleRunner, type CycleRunnerParts } from "../sync/cycle-runner.ts";
import { CycleTimer } from "../sync/cycle-timer.ts";
import { Daemon, type DaemonParts } from "../sync/daemon.ts";
import { StatusReport, type StatusFacts } from "../sync/status-report.ts";
import { TargetWatch } from "../sync/target/target-watch.ts";

export interface LoopParts
  extends CycleRunnerParts, Pick<DaemonParts, "intervalMs" | "bootstrap" | "enrolments" | "watch"> {
  readonly facts: StatusFacts;
  readonly loops: LoopMonitor;
}

/** Longest time of a cycle, in milliseconds: hundreds of rules, each with a command that takes its whole time limit. */
const MAX_CYCLE_MS = 60 * 60 * 1000;

/** Builds the sync loop with its timer, its watch of the targets, and its status. */
export function assembleLoop(parts: LoopParts): Daemon {
  const { engine, facts, loops, clock, logger } = parts;
  return new Daemon({
    ...parts,
    runner: new CycleRunner(parts),
    timer: new CycleTimer(loops.clockOf("sync", MAX_CYCLE_MS)),
    targets: new TargetWatch({ isTouched: (file) => engine.isTouched(file), clock, logger }),
    report: new StatusReport(facts, clock),
  });
}
