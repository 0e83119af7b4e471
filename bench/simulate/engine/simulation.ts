import { EventQueue } from "./event-queue.ts";

/** A pause of an activity. It gets the function that continues the activity. */
export type Wait = (resume: () => void) => void;

/** A course of events that pauses, such as one request. Equal seeds give equal activities. */
export type Activity<Result = void> = Generator<Wait, Result, void>;

/** Simulated time, and the events to come. */
export class Simulation {
  readonly #events = new EventQueue();
  #now = 0;

  /** Seconds from the beginning. */
  get now(): number {
    return this.#now;
  }

  /** Runs an action after some seconds. */
  after(seconds: number, action: () => void): void {
    this.#events.push(this.#now + seconds, action);
  }

  /** Pause of some seconds. */
  delay(seconds: number): Wait {
    return (resume) => this.after(seconds, resume);
  }

  /** Begins an activity now. @param ended runs at its end */
  start(activity: Activity, ended?: () => void): void {
    const step = (): void => {
      const { done, value } = activity.next();
      if (done === true) ended?.();
      else value(step);
    };
    step();
  }

  /** Runs all events up to this time. */
  runUntil(seconds: number): void {
    while ((this.#events.next ?? Infinity) <= seconds) {
      const event = this.#events.pop();
      if (event === undefined) break;
      this.#now = event.time;
      event.action();
    }
    this.#now = seconds;
  }
}
