import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { silentLogger, systemClock, type Clock } from "@devplat/base";
import { ObjectStoreError } from "@devplat/object-store";
import { tempFolder, until } from "@devplat/testkit";
import { repositoryId } from "../../../access/repository-id.ts";
import { SvcError } from "../../../errors.ts";
import { FaultLog } from "../../fault-log.ts";
import { UPLOADS_FOLDER } from "../../responses/response-folders.ts";
import { UploadJournal } from "./upload-journal.ts";
import type { UploadJob } from "./upload-job.ts";
import { UploadQueue, type UploadQueueOptions } from "./upload-queue.ts";

const ID = repositoryId("org", "name");
const OTHER = repositoryId("org", "other");
const MEGABYTE = 2 ** 20;
/** A clock that a wait moves. */
function quickClock(waits: number[] = []): Clock {
  let now = 0;
  const sleep = async (ms: number): Promise<void> => {
    waits.push(ms);
    now += ms;
    await new Promise(setImmediate);
  };
  return { now: () => now, monotonic: () => now, sleep };
}

describe("UploadQueue", () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>;
  let epochs: Map<string, number>;
  let done: string[];
  let ends: AbortController[];
  let runs: Promise<void>[];
  let fault: ((job: UploadJob) => void) | undefined;
  let held: Promise<void> | undefined;

  beforeEach(async () => {
    folder = await tempFolder("svc-uploads");
    [epochs, done, ends, runs, fault, held] = [new Map(), [], [], [], undefined, undefined];
  });
  afterEach(async () => {
    for (const end of ends) end.abort();
    await Promise.all(runs);
    await folder.remove();
  });

  const open = (options: Partial<UploadQueueOptions> = {}, clock: Clock = systemClock): UploadQueue => {
    const queue = new UploadQueue(
      {
        journal: new UploadJournal(folder.path),
        epochs: { of: ({ key }) => epochs.get(key) ?? 1 },
        faults: new FaultLog(silentLogger),
        clock,
      },
      { maxBytes: 100 * MEGABYTE, parallel: 1, ...options },
    );
    const run = async (job: UploadJob, signal: AbortSignal): Promise<void> => {
      const ended = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => ended.reject(signal.reason as Error));
      await Promise.race([held, ended.promise]);
      fault?.(job);
      done.push(job.subject);
    };
    queue.register("response", { isDroppable: true, run });
    queue.register("mirror", { isDroppable: false, run });
    return queue;
  };
  const start = (queue: UploadQueue): AbortController => {
    const end = new AbortController();
    ends.push(end);
    runs.push(queue.run(end.signal));
    return end;
  };
  const response = (subject: string, bytes = 1000, id = ID) => ({ kind: "response", id, subject, bytes });
  const journal = async (): Promise<string[]> => readdir(join(folder.path, UPLOADS_FOLDER));

  it("runs jobs in their order, and a job that is waited for first", async () => {
    const queue = open();
    for (const subject of ["a", "b", "c"]) queue.add(response(subject));
    queue.hurry(response("c"));
    start(queue);
    await queue.drain(10_000);
    assert.deepEqual(done, ["c", "a", "b"]);
    assert.deepEqual(queue.figures(), { jobs: 0, bytes: 0 });
    await queue.settled();
    assert.deepEqual(await journal(), []);
  });

  it("runs several jobs concurrently, but never more than the limit", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    const queue = open({ parallel: 3 });
    let [running, most] = [0, 0];
    queue.register("response", {
      isDroppable: true,
      run: async ({ subject }) => {
        most = Math.max(most, ++running);
        await held;
        running--;
        done.push(subject);
      },
    });
    for (const subject of "abcdefg") queue.add(response(subject));
    start(queue);
    await until(() => running === 3);
    resolve();
    await queue.drain(10_000);
    assert.equal(most, 3);
    assert.equal(done.length, 7);
  });

  it("a job that is added twice runs once, and again if it was running", async () => {
    const queue = open();
    queue.add(response("a"));
    queue.add(response("a"));
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    const begun = Promise.withResolvers<void>();
    fault = () => begun.resolve();
    start(queue);
    await until(() => queue.has(response("a")));
    await new Promise(setImmediate);
    queue.add(response("a"));
    held = undefined;
    resolve();
    await queue.drain(10_000);
    assert.deepEqual(done, ["a", "a"]);
  });

  it("another process runs the jobs that a stopped one left", async () => {
    const { promise } = Promise.withResolvers<void>();
    held = promise;
    const first = open();
    first.add(response("a"));
    first.add({ kind: "mirror", id: OTHER, subject: "", bytes: 5 });
    const end = start(first);
    await first.settled();
    end.abort();
    await Promise.all(runs);
    held = undefined;
    const second = open();
    await second.restore();
    assert.equal(second.figures().jobs, 2);
    assert.equal(second.figures(OTHER).jobs, 1);
    start(second);
    await second.drain(10_000);
    assert.deepEqual(done, ["a", ""]);
    await second.settled();
    assert.deepEqual(await journal(), []);
  });

  it("damaged and foreign files of the journal are not jobs", async () => {
    const first = open();
    first.add(response("a"));
    await first.settled();
    const path = join(folder.path, UPLOADS_FOLDER);
    await mkdir(path, { recursive: true });
    const [good = ""] = await journal();
    for (const [name, text] of [
      [`${"0".repeat(40)}.json`, "{"],
      [`${"1".repeat(40)}.json`, JSON.stringify({ kind: 5 })],
      [`${"2".repeat(40)}.json`, JSON.stringify({ kind: "response", owner: "o", name: "n", subject: "s" })],
      [`.${good}.0011.aside~`, "{}"],
      ["note.txt", "kept"],
    ] as const)
      await writeFile(join(path, name), text);
    const second = open();
    await second.restore();
    assert.equal(second.figures().jobs, 1);
    assert.deepEqual((await journal()).toSorted(), [good, "note.txt"].toSorted());
  });

  it("a full queue drops responses first, and mirrors wait all the same", () => {
    const dropped: string[] = [];
    const queue = open({
      maxBytes: 3 * MEGABYTE,
      onTried: (kind, result) => dropped.push(`${kind} ${result}`),
    });
    queue.add(response("a", MEGABYTE));
    queue.add(response("b", MEGABYTE));
    queue.add(response("c", 2 * MEGABYTE));
    assert.deepEqual(dropped, ["response dropped"]);
    assert.ok(!queue.has(response("c")));
    queue.add({ kind: "mirror", id: ID, subject: "", bytes: 2 * MEGABYTE });
    assert.ok(!queue.has(response("a")), "the oldest response");
    assert.ok(queue.has(response("b")));
    queue.add({ kind: "mirror", id: OTHER, subject: "", bytes: 9 * MEGABYTE });
    assert.deepEqual(queue.figures(), { jobs: 2, bytes: 11 * MEGABYTE });
  });

  it("many small jobs fill the queue too", () => {
    const queue = open({ maxBytes: MEGABYTE });
    for (let at = 0; at < 100; at++) queue.add(response(String(at), 1));
    assert.equal(queue.figures().jobs, 16);
  });

  it("repeats after a fault of the store, and leaves it alone for a growing time", async () => {
    let tries = 0;
    fault = () => {
      if (++tries < 4) throw new ObjectStoreError("slow_down", "slow down");
    };
    const waits: number[] = [];
    const queue = open({}, quickClock(waits));
    queue.add(response("a"));
    queue.add(response("b"));
    start(queue);
    await until(() => done.length === 2);
    assert.equal(tries, 5);
    assert.equal(waits.length, 3);
    assert.ok(waits[2]! > waits[0]!, String(waits));
  });

  it("all jobs wait for a database that does not respond, and none is given up", async () => {
    let tries = 0;
    fault = () => {
      if (++tries < 20) throw new SvcError("database_unavailable", "the connection ended");
    };
    const waits: number[] = [];
    const queue = open({}, quickClock(waits));
    queue.add(response("a"));
    queue.add(response("b"));
    start(queue);
    await until(() => queue.figures().jobs === 0);
    assert.deepEqual(done.toSorted(), ["a", "b"]);
    assert.equal(waits.length, 19);
    assert.ok(Math.max(...waits) <= 36_000, String(waits));
  });

  it("only the job whose record is contested waits, and it is not given up", async () => {
    let tries = 0;
    fault = ({ subject }) => {
      if (subject === "a" && ++tries < 20) throw new SvcError("database_contention", "others change it");
    };
    const queue = open({}, quickClock());
    queue.add(response("a"));
    for (const subject of ["b", "c", "d"]) queue.add(response(subject));
    start(queue);
    await until(() => queue.figures().jobs === 0);
    assert.deepEqual(done, ["b", "c", "d", "a"]);
    assert.equal(tries, 20);
  });

  it("gives up a job that fails although the store works, and runs the others", async () => {
    let tries = 0;
    fault = ({ subject }) => {
      if (subject === "a") {
        tries++;
        throw new Error("not readable");
      }
    };
    const queue = open({}, quickClock());
    queue.add(response("a"));
    queue.add(response("b"));
    start(queue);
    await until(() => queue.figures().jobs === 0);
    assert.deepEqual(done, ["b"]);
    assert.equal(tries, 6);
  });

  it("never gives up a job whose work nothing else would do", async () => {
    let tries = 0;
    const waits: number[] = [];
    const queue = open({}, quickClock(waits));
    queue.register("reset", {
      isDroppable: false,
      isNeverGivenUp: true,
      async run() {
        if (++tries < 20) throw new Error("the database does not respond");
        done.push("reset");
        await Promise.resolve();
      },
    });
    queue.add({ kind: "reset", id: ID, subject: "", bytes: 0 });
    start(queue);
    await until(() => queue.figures().jobs === 0);
    assert.deepEqual(done, ["reset"]);
    assert.ok(Math.max(...waits) <= 30_000, "the waits have a limit");
  });

  it("drops the jobs of a purged repository, and ends the running one", async () => {
    const { promise } = Promise.withResolvers<void>();
    held = promise;
    const queue = open();
    queue.add(response("a"));
    queue.add(response("b"));
    queue.add(response("c", 1, OTHER));
    start(queue);
    await new Promise(setImmediate);
    epochs.set(ID.key, 2);
    queue.drop(ID);
    assert.equal(queue.figures(ID).jobs, 0);
    held = undefined;
    queue.add(response("a"));
    await queue.drain(10_000);
    assert.deepEqual(done, ["c", "a"]);
  });

  it("jobs of an earlier epoch are dropped after a restart", async () => {
    const first = open();
    first.add(response("a"));
    await first.settled();
    epochs.set(ID.key, 2);
    const second = open();
    await second.restore();
    start(second);
    await second.drain(10_000);
    assert.deepEqual(done, []);
  });

  it("draining ends when the time is over, and when the store fails", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    const queue = open();
    queue.add(response("a"));
    start(queue);
    await queue.drain(1);
    assert.equal(queue.figures().jobs, 1);
    fault = () => {
      throw new ObjectStoreError("unreachable", "gone");
    };
    const draining = queue.drain(600_000);
    resolve();
    await draining;
    assert.equal(queue.figures().jobs, 1);
  });
});
