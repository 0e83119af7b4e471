import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { IndexWorkers } from "@devplat/git-store";
import { INDEX_THREAD } from "./entries.ts";
import type { JobRunner } from "./job.ts";
import { WarmJobs } from "./warm-jobs.ts";

const job = { kind: "checksum", format: "sha1", packs: [] } as const;
const failing = { kind: "damage", path: "/nonexistent", format: "sha1" } as const;

describe("WarmJobs", () => {
  let pool: IndexWorkers;
  let separate: number;
  let jobs: WarmJobs;

  beforeEach(() => {
    pool = new IndexWorkers({ entry: INDEX_THREAD, max: 1, keep: 1, idleMs: 60_000 });
    separate = 0;
    const otherwise: JobRunner = {
      run: async () => void separate++ as never,
      rest: async () => undefined,
    };
    jobs = new WarmJobs(pool, otherwise);
  });

  afterEach(async () => {
    await jobs.close();
    await pool.close();
  });

  it("runs a job in the idle thread of the pool, and returns the thread", async () => {
    const worker = await pool.take();
    await pool.give(worker);
    await jobs.run(job);
    await jobs.run(job);
    assert.equal(separate, 0);
    const next = await pool.take();
    assert.equal(next, worker);
    await pool.give(next);
  });

  it("runs a job separately while all threads wait for packs, and when none is idle", async () => {
    await jobs.run(job);
    assert.equal(separate, 1);
    const worker = await pool.take();
    await jobs.run(job);
    assert.equal(separate, 2);
    await pool.give(worker);
  });

  it("a failed job rejects with its code, and the thread runs the next one", async () => {
    const worker = await pool.take();
    await pool.give(worker);
    await assert.rejects(jobs.run(failing), { name: "JobFailure", code: "ENOENT" });
    await jobs.run(job);
    assert.equal(separate, 0);
  });

  it("a thread that ends rejects its job, and the pool starts another one", async () => {
    const worker = await pool.take();
    await pool.give(worker);
    const rejected = assert.rejects(jobs.run(job), /ended/);
    await worker.terminate();
    await rejected;
    const next = await pool.take();
    assert.notEqual(next, worker);
    await pool.give(next);
  });

  it("close rejects a running job", async () => {
    await pool.give(await pool.take());
    const rejected = assert.rejects(jobs.run(job), /was ended/);
    await jobs.close();
    await rejected;
  });
});
