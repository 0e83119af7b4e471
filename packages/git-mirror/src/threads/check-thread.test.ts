import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProofThread } from "./check-thread.ts";

const job = { kind: "checksum", format: "sha1", packs: [] } as const;

describe("ProofThread", () => {
  it("a job that is given while the thread before it ends is done by another", async () => {
    const thread = new ProofThread();
    for (let turn = 0; turn < 5; turn++) {
      await thread.do(job);
      const resting = thread.rest();
      await assert.doesNotReject(thread.do(job));
      await resting;
    }
    await thread.close();
  });

  it("rest lets a job finish, close rejects it", async () => {
    const thread = new ProofThread();
    const finished = thread.do(job);
    await thread.rest();
    await finished;
    const rejected = assert.rejects(thread.do(job), /was ended/);
    await thread.close();
    await rejected;
  });
});
