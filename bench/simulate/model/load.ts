import type { Activity } from "../engine/simulation.ts";
import type { Fleet } from "./fleet.ts";
import type { Jobs } from "./jobs.ts";
import type { Repository } from "./repositories.ts";

/** Begins the jobs of a scenario. */
export function startLoad(fleet: Fleet, jobs: Jobs): void {
  const { load } = fleet.scenario;
  const { simulation } = fleet;
  if (load.kind === "pushed") {
    const { jobsPerSecond, jobsPerPush, spread } = load;
    const pushed = (repository: Repository): void => {
      for (let job = 0; job < jobsPerPush; job++)
        simulation.after(fleet.arrivals.exponential(spread), () => simulation.start(jobs.run(repository)));
    };
    simulation.start(pushes(fleet, jobsPerPush / jobsPerSecond, pushed));
    return;
  }
  if (load.pushesPerSecond > 0) simulation.start(pushes(fleet, 1 / load.pushesPerSecond, () => undefined));
  if (load.kind === "steady") simulation.start(atRandom(fleet, jobs, 1 / load.jobsPerSecond));
  else for (let client = 0; client < load.clients; client++) simulation.start(oneAfterAnother(fleet, jobs));
}

function* oneAfterAnother(fleet: Fleet, jobs: Jobs): Activity {
  for (;;) yield* jobs.run(fleet.repositories.choose());
}

/** @param mean seconds between two jobs */
function* atRandom(fleet: Fleet, jobs: Jobs, mean: number): Activity {
  const { simulation } = fleet;
  for (;;) {
    yield simulation.delay(fleet.starts.exponential(mean));
    simulation.start(jobs.run(fleet.repositories.choose()));
  }
}

/** Pushes to repositories, the popular ones more often. @param mean seconds between two of them */
function* pushes(fleet: Fleet, mean: number, pushed: (repository: Repository) => void): Activity {
  const { simulation, counters } = fleet;
  for (;;) {
    yield simulation.delay(fleet.arrivals.exponential(mean));
    const repository = fleet.repositories.choose();
    repository.version++;
    const { index } = repository;
    counters.pushesOfRepository.set(index, (counters.pushesOfRepository.get(index) ?? 0) + 1);
    pushed(repository);
  }
}
