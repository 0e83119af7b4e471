import { readFile } from "node:fs/promises";
import { until } from "./until.ts";

/** Runs an action while a process is stopped (SIGSTOP). Its connections stay open, and it sends no response. */
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
