import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { BRAND } from "../brand.ts";

/** Queue: large responses that are made here, or fetches from the code host. */
export type QueueName = "responses" | "upstream";
/** How a work left a queue; `left`: its client disconnected. */
export type QueueResult = "served" | "refused" | "left";
/** Works of a queue at this moment. */
export interface QueueFigures {
  readonly name: QueueName;
  readonly waiting: number;
  readonly running: number;
}

/** Seconds in a queue; up to `cache.queue_seconds` by default, and longer for clients that were told that they wait. */
const WAIT_BUCKETS = [0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600];

const named = (name: string): string => `${BRAND.metricPrefix}_queue_${name}`;

/** Metrics of the queues. */
export class QueueMetrics {
  readonly #total: Counter<"queue" | "result">;
  readonly #wait: Histogram<"queue">;
  #queues: readonly QueueFigures[] = [];
  #told = (): number => 0;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#total = new Counter({
      name: named("total"),
      help: "Requests that had to wait for a place, by how the wait ended.",
      labelNames: ["queue", "result"],
      registers,
    });
    this.#wait = new Histogram({
      name: named("wait_seconds"),
      help: "Time that requests waited for a place.",
      labelNames: ["queue"],
      buckets: WAIT_BUCKETS,
      registers,
    });
    for (const queue of ["responses", "upstream"]) {
      for (const result of ["served", "refused", "left"]) this.#total.inc({ queue, result }, 0);
    }
    const gauge = (name: string, help: string, value: (queue: QueueFigures) => number): void => {
      const queues = (): readonly QueueFigures[] => this.#queues;
      const collect = function (this: Gauge<"queue">): void {
        for (const queue of queues()) this.set({ queue: queue.name }, value(queue));
      };
      registry.registerMetric(
        new Gauge({ name: named(name), help, labelNames: ["queue"], registers: [], collect }),
      );
    };
    gauge("waiting", "Requests that wait for a place.", ({ waiting }) => waiting);
    gauge("running", "Requests that have a place.", ({ running }) => running);
    const told = (): number => this.#told();
    registry.registerMetric(
      new Gauge({
        name: named("told"),
        help: "Clients that were told that they wait, in all queues.",
        registers: [],
        collect(): void {
          this.set(told());
        },
      }),
    );
  }

  /** Shows these queues from now on. @param told clients that were told that they wait */
  watch(queues: readonly QueueFigures[], told: () => number): void {
    this.#queues = queues;
    this.#told = told;
  }

  /** A request left a queue. @param seconds that it waited */
  queued(queue: QueueName, result: QueueResult, seconds: number): void {
    this.#total.inc({ queue, result });
    this.#wait.observe({ queue }, seconds);
  }
}
