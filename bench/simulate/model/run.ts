import type { Costs } from "./costs.ts";
import { Fleet } from "./fleet.ts";
import { Jobs } from "./jobs.ts";
import { startLoad } from "./load.ts";
import { outcomeOf, type Outcome } from "./outcome.ts";
import type { Scenario } from "./scenario.ts";

/** Simulates a scenario. Equal inputs give an equal outcome. */
export function simulate(scenario: Scenario, costs: Costs): Outcome {
  const fleet = new Fleet(scenario, costs);
  startLoad(fleet, new Jobs(fleet));
  fleet.simulation.runUntil(scenario.warmUp);
  const inFlight = fleet.inFlight.level;
  fleet.reset();
  fleet.simulation.runUntil(scenario.warmUp + scenario.seconds);
  return outcomeOf(fleet, inFlight);
}
