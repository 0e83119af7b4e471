import assert from "node:assert/strict";
import { it } from "node:test";
import { decodeFetchRequest } from "@devplat/git-protocol";
import { ClientWait } from "../admission/client-wait.ts";
import type { WaitingJob } from "../fetch-plan.ts";
import type { MirrorOutcome } from "../mirror-responses.ts";
import type { RepositoryReset } from "../repository-reset.ts";
import { respondWithKeepalive } from "./respond-with-keepalive.ts";

it("no stored data follows keepalive packets if the repository was replaced", async () => {
  const command = { command: "fetch", capabilities: [], args: [`want ${"a".repeat(40)}`, "done"] };
  let released = false;
  async function* stored(): AsyncGenerator<Buffer> {
    try {
      yield Buffer.from("data of the old repository");
    } finally {
      released = true;
    }
  }
  const primed = stored();
  await primed.next();
  const wait = new ClientWait({ since: 0, client: "a", beginning: undefined });
  const prepared = Promise.withResolvers<MirrorOutcome>();
  const outcome = await respondWithKeepalive({
    // Only what a request uses that waits for the mirror.
    job: {
      fetch: decodeFetchRequest(command, "sha1"),
      gone: new AbortController().signal,
      wait,
      authorization: {
        wantsShown: true,
        identity: 0,
        renew: () => Promise.resolve({ kind: "replaced" }),
        recheckWants: () => Promise.resolve(true),
      },
    } as unknown as WaitingJob,
    pending: prepared.promise,
    signal: new AbortController().signal,
    intervalMs: 1,
    reset: {} as RepositoryReset,
  });
  assert.ok(outcome.kind === "begun" && outcome.keptAlive === true);
  assert.equal(wait.isServed, true, "a queue may refuse a client that has bytes");
  prepared.resolve({ kind: "begun", chunks: primed, fetched: true });
  await assert.rejects(async () => {
    for await (const chunk of outcome.chunks) assert.ok(!chunk.includes("old repository"));
  }, /the repository changed/);
  assert.equal(released, true);
});
