import { readFile } from "node:fs/promises";
import { until } from "./until.ts";

/** Does something while a process stands still (SIGSTOP): its connections stay open, and it answers nothing. */
export async function whileHanging(pid: number, action: () => Promise<void>): Promise<void> {
  process.kill(pid, "SIGSTOP");
  try {
    // The signal takes its time on a busy machine: threads may answer until then (proc_pid_stat(5): state T).
    await until(async () => /\) T /.test(await readFile(`/proc/${pid}/stat`, "utf8")));
    await action();
  } finally {
    process.kill(pid, "SIGCONT");
  }
}
