import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const LOAD = fileURLToPath(new URL("stream-load.ts", import.meta.url));
/** As many as the server keeps open. */
const STREAMS = 32;
/** Caches of the engine fill before the first measurement, in milliseconds. */
const WARM_UP_MS = 3000;
/** One stream is closed and another opened this often, in milliseconds, as pages come and go. */
const CHURN_MS = 250;

const LOOKS = 4;

export interface StreamLoad {
  readonly seconds: number;
  /** Changes that were pushed to every stream. */
  readonly changes: number;
  /** Bytes that came in over all streams. */
  readonly received: number;
  /** Growth of the server's memory from the warm-up to the end, in bytes, after garbage collection. */
  readonly growth: number;
}

/** Holds 32 streams of pages and API open for that long, some of them coming and going, while the state changes. */
export async function loadStreams(seconds: number): Promise<StreamLoad> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", "--expose-gc", LOAD], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const { value, done } = await lines.next();
    assert.ok(done !== true, "the server has ended");
    return value;
  };
  /** The least of some looks: what is on its way to a reader just then does not count. */
  const measure = async (): Promise<{ bytes: number; changes: number }> => {
    let least = { bytes: Infinity, changes: 0 };
    for (let look = 0; look < LOOKS; look++) {
      child.stdin.write("measure\n");
      const seen = JSON.parse(await line()) as { bytes: number; changes: number };
      if (seen.bytes < least.bytes) least = seen;
      await sleep(CHURN_MS);
    }
    return least;
  };
  const url = await line();
  let received = 0;
  const open: IncomingMessage[] = [];
  const openOne = async (at: number): Promise<void> => {
    const outgoing = request(`${url}${at % 2 === 0 ? "/ui/sse" : "/api/v1/events"}`);
    outgoing.on("error", () => undefined).end();
    const [stream] = (await once(outgoing, "response")) as [IncomingMessage];
    assert.equal(stream.statusCode, 200);
    stream.on("data", (chunk: Buffer) => (received += chunk.length)).on("error", () => undefined);
    open.push(stream);
  };
  try {
    for (let at = 0; at < STREAMS; at++) await openOne(at);
    await sleep(WARM_UP_MS);
    const before = await measure();
    const start = performance.now();
    for (let at = 0; performance.now() - start < seconds * 1000; at++) {
      await sleep(CHURN_MS);
      open.shift()?.destroy();
      await openOne(at);
    }
    const after = await measure();
    return {
      seconds: (performance.now() - start) / 1000,
      changes: after.changes - before.changes,
      received,
      growth: after.bytes - before.bytes,
    };
  } finally {
    for (const stream of open) stream.destroy();
    child.stdin.end();
    if (child.exitCode === null) await once(child, "exit");
  }
}
