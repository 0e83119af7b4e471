import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Places } from "./places.ts";
import { Random } from "./random.ts";
import { SharedResource } from "./shared-resource.ts";
import { Simulation, type Activity, type Wait } from "./simulation.ts";
import { TimeAverage } from "./time-average.ts";

/** Difference from the closed form that the number of jobs below allows. */
const TOLERANCE = 0.06;
const JOBS = 60_000;
const SERVICE = 1;

interface Queue {
  /** Mean number in the system, and mean seconds of a job. */
  readonly number: number;
  readonly seconds: number;
  readonly rate: number;
  readonly utilisation: number;
}

/** A queue with random arrivals. @param load arrivals for each mean service time */
function queue(load: number, serve: "one by one" | "shared", fixed: boolean, seed = 1): Queue {
  const simulation = new Simulation();
  const [arrivals, services] = [new Random(seed, 0), new Random(seed, 1)];
  const places = new Places(simulation, { places: 1 });
  const [cpu, share] = SharedResource.single(simulation, 1, 1);
  const inSystem = new TimeAverage(simulation);
  let [done, sum] = [0, 0];
  function* job(): Activity {
    const startedAt = simulation.now;
    const service = fixed ? SERVICE : services.exponential(SERVICE);
    inSystem.add(1);
    if (serve === "shared") yield cpu.use(share, service);
    else {
      const place: Wait = (resume) => places.take(0, 1, () => resume());
      yield place;
      yield simulation.delay(service);
      places.leave();
    }
    inSystem.add(-1);
    done++;
    sum += simulation.now - startedAt;
  }
  function* source(): Activity {
    for (;;) {
      yield simulation.delay(arrivals.exponential(SERVICE / load));
      simulation.start(job());
    }
  }
  simulation.start(source());
  const seconds = (JOBS * SERVICE) / load;
  simulation.runUntil(seconds);
  return {
    number: inSystem.average,
    seconds: sum / done,
    rate: done / seconds,
    utilisation: serve === "shared" ? cpu.utilisation : places.utilisation,
  };
}

function assertNear(actual: number, expected: number, what: string): void {
  assert.ok(
    Math.abs(actual - expected) <= TOLERANCE * expected,
    `${what}: ${actual.toFixed(3)}, expected ${expected.toFixed(3)}`,
  );
}

describe("queues against closed forms", () => {
  for (const load of [0.3, 0.7]) {
    it(`M/M/1 at a load of ${load} has the mean of the closed form`, () => {
      const { number, seconds } = queue(load, "one by one", false);
      assertNear(seconds, SERVICE / (1 - load), "seconds");
      assertNear(number, load / (1 - load), "jobs in the system");
    });

    it(`M/D/1 at a load of ${load} has the mean of Pollaczek and Khinchine`, () => {
      const { seconds } = queue(load, "one by one", true);
      assertNear(seconds, SERVICE + (load * SERVICE) / (2 * (1 - load)), "seconds");
    });

    it(`processor sharing at a load of ${load} does not depend on the distribution`, () => {
      for (const fixed of [false, true]) {
        const { seconds } = queue(load, "shared", fixed);
        assertNear(seconds, SERVICE / (1 - load), `seconds, ${fixed ? "fixed" : "exponential"}`);
      }
    });

    it(`Little's law and the utilisation law hold at a load of ${load}`, () => {
      for (const serve of ["one by one", "shared"] as const) {
        const { number, seconds, rate, utilisation } = queue(load, serve, false, 7);
        assertNear(number, rate * seconds, "jobs in the system");
        assertNear(utilisation, rate * SERVICE, "utilisation");
      }
    });
  }
});

describe("a shared resource", () => {
  it("gives each share what it can use, and divides the rest by weight", () => {
    const simulation = new Simulation();
    const cores = new SharedResource(simulation, 2);
    const main = cores.share({ limit: 1, perJob: 1 });
    const background = cores.share({ limit: 2, perJob: 1, weight: 0.1 });
    const ends = new Map<string, number>();
    function* work(name: string, share: typeof main, amount: number): Activity {
      yield cores.use(share, amount);
      ends.set(name, simulation.now);
    }
    // Two jobs of the main thread share one core; the two in the background get the other one.
    simulation.start(work("first", main, 1));
    simulation.start(work("second", main, 1));
    simulation.start(work("background 1", background, 1));
    simulation.start(work("background 2", background, 1));
    simulation.runUntil(10);
    assert.equal(ends.get("first"), 2);
    assert.equal(ends.get("second"), 2);
    assert.ok(Math.abs((ends.get("background 2") ?? 0) - 2) < 1e-9);
    assert.ok(Math.abs(cores.work - 4) < 1e-9);
  });

  it("gives low weights little when its capacity is short", () => {
    const simulation = new Simulation();
    const cores = new SharedResource(simulation, 1);
    const high = cores.share({ limit: 1, perJob: 1 });
    const low = cores.share({ limit: 1, perJob: 1, weight: 0.1 });
    const ends: number[] = [];
    function* work(share: typeof high): Activity {
      yield cores.use(share, 1);
      ends.push(simulation.now);
    }
    simulation.start(work(low));
    simulation.start(work(high));
    simulation.runUntil(10);
    assert.ok(Math.abs((ends[0] ?? 0) - 1.1) < 1e-9);
    assert.ok(Math.abs((ends[1] ?? 0) - 2) < 1e-9);
  });
});

describe("places", () => {
  it("serves clients in turn, not in the order of their requests", () => {
    const simulation = new Simulation();
    const places = new Places(simulation, { places: 1 });
    const served: string[] = [];
    const take = (name: string, client: number): void =>
      places.take(client, 1, () => {
        served.push(name);
        simulation.after(1, () => places.leave());
      });
    for (const name of ["a1", "a2", "a3"]) take(name, 1);
    take("b1", 2);
    simulation.runUntil(10);
    assert.deepEqual(served, ["a1", "b1", "a2", "a3"]);
  });

  it("refuses a request whose patience ends, and one above the limit", () => {
    const simulation = new Simulation();
    const places = new Places(simulation, { places: 1, maxWaiting: 1, patience: 5 });
    const granted: boolean[] = [];
    for (let at = 0; at < 3; at++) places.take(at, 1, (has) => granted.push(has));
    simulation.runUntil(10);
    assert.deepEqual(granted, [true, false, false]);
    assert.equal(places.refused, 2);
    assert.equal(places.waiting.level, 0);
  });
});
