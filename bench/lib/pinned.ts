import { availableParallelism } from "node:os";
import { run } from "@devplat/testkit";

/** CPU list of `taskset` with all CPUs. */
const ALL = `0-${availableParallelism() - 1}`;

/** Moves all threads of processes to one CPU during some work; then they may use all again. Linux only. */
export async function pinnedTo<Result>(
  cpu: number,
  pids: readonly number[],
  work: () => Promise<Result>,
): Promise<Result> {
  const move = async (list: string): Promise<void> => {
    for (const pid of pids) {
      const { code } = await run("taskset", ["-a", "-c", "-p", list, String(pid)], { timeoutMs: 10_000 });
      if (code !== 0) throw new Error(`taskset -p ${list} ${pid} ended with ${code}`);
    }
  };
  try {
    await move(String(cpu));
    return await work();
  } finally {
    await move(ALL);
  }
}
