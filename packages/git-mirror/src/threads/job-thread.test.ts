import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Urgency } from "./give-way.ts";
import { JobThread } from "./job-thread.ts";

const job = { kind: "checksum", format: "sha1", packs: [] } as const;

describe("JobThread", () => {
  it("runs a job that arrives while the previous thread ends in another thread", async () => {
    const thread = new JobThread(new Urgency());
    for (let turn = 0; turn < 5; turn++) {
      await thread.run(job);
      const resting = thread.rest();
      await assert.doesNotReject(thread.run(job));
      await resting;
    }
    await thread.close();
  });

  it("rest lets a job finish, close rejects it", async () => {
    const thread = new JobThread(new Urgency());
    const finished = thread.run(job);
    await thread.rest();
    await finished;
    const rejected = assert.rejects(thread.run(job), /was ended/);
    await thread.close();
    await rejected;
  });
});
