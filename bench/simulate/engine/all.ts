import type { Wait } from "./simulation.ts";

/** Pause until all of these are over. They run at the same time, like the parts of a pipeline. */
export function all(waits: readonly Wait[]): Wait {
  return (resume) => {
    let left = waits.length;
    if (left === 0) return resume();
    const done = (): void => {
      if (--left === 0) resume();
    };
    for (const wait of waits) wait(done);
  };
}
