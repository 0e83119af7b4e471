import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isProcess } from "@devplat/base/process-signal";

/** Content of `data/running.json`, which exists while `npm start` runs. */
interface Running {
  readonly pid: number;
  readonly urls: readonly string[];
}

/** The `npm start` that runs on this data folder, or undefined. The file of a killed one is ignored. */
export async function runningStart(data: string): Promise<Running | undefined> {
  try {
    const running = JSON.parse(await readFile(fileIn(data), "utf8")) as Running;
    if (!isProcess(running.pid)) return undefined;
    const answers = await Promise.all(running.urls.map((url) => fetch(url).catch(() => undefined)));
    for (const answer of answers) await answer?.body?.cancel();
    return answers.some((answer) => answer !== undefined) ? running : undefined;
  } catch {
    return undefined;
  }
}

export async function noteRunning(data: string, urls: readonly string[]): Promise<void> {
  await writeFile(fileIn(data), `${JSON.stringify({ pid: process.pid, urls } satisfies Running)}\n`, {
    mode: 0o600,
  });
}

export async function forgetRunning(data: string): Promise<void> {
  await rm(fileIn(data), { force: true });
}

function fileIn(data: string): string {
  return join(data, "running.json");
}
