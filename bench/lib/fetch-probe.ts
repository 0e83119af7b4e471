import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { KeptConnection, postBytes } from "./kept-connection.ts";
import { HEADERS } from "./raw-fetch.ts";

/** Requests of a probe, one after another, over one connection. */
export interface ProbePlan {
  /** Address of `git-upload-pack`. */
  readonly url: string;
  /** Bodies in base64. Each sample sends the bodies of one entry one after another; the last entry is followed by the first. */
  readonly samples: readonly (readonly string[])[];
  /** Milliseconds between two samples. */
  readonly pauseMs: number;
}

/** A process that measures how long requests take while other programs load the machine. */
export interface FetchProbe {
  readonly pid: number;
  /** Measures during some work. @returns milliseconds of each request of each sample */
  during(work: () => Promise<unknown>): Promise<number[][]>;
  stop(): Promise<void>;
}

/** Starts a probe in a process of its own, so that nothing else of the benchmark delays its clock. */
export async function startProbe(plan: ProbePlan): Promise<FetchProbe> {
  const child = fork(import.meta.filename, [], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  child.send(plan);
  await once(child, "message");
  return {
    pid: child.pid ?? 0,
    during: async (work) => {
      child.send("begin");
      try {
        await work();
      } finally {
        child.send("end");
      }
      const [times] = (await once(child, "message")) as [number[][]];
      return times;
    },
    stop: async () => {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    },
  };
}

async function measure({ url, samples, pauseMs }: ProbePlan, isOver: () => boolean): Promise<number[][]> {
  const connection = await KeptConnection.open(url);
  const times: number[][] = [];
  for (let at = 0; !isOver(); at++) {
    const sample: number[] = [];
    for (const body of samples[at % samples.length] ?? [])
      sample.push((await connection.send(postBytes(url, HEADERS, Buffer.from(body, "base64")))).ms);
    times.push(sample);
    await sleep(pauseMs);
  }
  connection.close();
  return times;
}

async function serve(plan: ProbePlan): Promise<void> {
  process.send?.("ready");
  for (;;) {
    await once(process, "message");
    let isOver = false;
    process.once("message", () => (isOver = true));
    const times = await measure(plan, () => isOver);
    process.send?.(times);
  }
}

if (process.argv[1] === import.meta.filename) process.once("message", (plan: ProbePlan) => void serve(plan));
