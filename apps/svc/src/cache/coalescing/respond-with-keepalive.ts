import { within } from "@devplat/base";
import { isUploadPackResult } from "../../upstream/headers.ts";
import { AccessEnded, type FetchJob, type WaitingJob } from "../fetch-plan.ts";
import { canKeepAlive, drop, keptAlive } from "./keep-alive.ts";
import type { RepositoryReset } from "../repository-reset.ts";
import type { MirrorOutcome } from "../mirror-responses.ts";

/**
 * Waits for a response that is being prepared. If that takes longer than the keepalive interval and the request allows
 * it, the response begins with keepalive packets. If the mirror cannot answer then, the code host's response follows
 * them. Access is confirmed before stored data follows them.
 */
export async function respondWithKeepalive({
  job,
  pending,
  signal,
  intervalMs,
  reset,
}: {
  readonly job: WaitingJob;
  readonly pending: Promise<MirrorOutcome>;
  readonly signal: AbortSignal;
  readonly intervalMs: number;
  readonly reset: RepositoryReset;
}): Promise<MirrorOutcome> {
  if (job.fetch === undefined || !canKeepAlive(job.fetch)) return await pending;
  const soon = await within(pending, intervalMs);
  if (soon !== undefined) return soon;
  job.wait.begun();
  const chunks = pending.then(async (settled) => {
    if (settled.kind === "begun") {
      try {
        await confirm(job);
      } catch (error) {
        await drop(settled.chunks);
        throw error;
      }
      return settled.chunks;
    }
    // A queue that gave no place to fetch the missing objects must not end a response that has begun.
    if (settled.kind === "relay") throw new Error("the code host gives no pack");
    if (settled.kind === "unrelated") await reset.startAnew(job.repository);
    const response = await job.upstream.fetch(job.body, signal);
    if (!isUploadPackResult(response)) throw new Error("the code host gives no pack");
    return response.chunks;
  });
  chunks.catch(() => undefined);
  return { kind: "begun", chunks: keptAlive(chunks, intervalMs), fetched: true, keptAlive: true };
}

/** Confirms access before cached data follows keepalive packets. @throws AccessEnded, GitError */
async function confirm({ gone, authorization }: FetchJob): Promise<void> {
  // The response is then for the clients that joined. The access of each of them is confirmed separately.
  if (gone.aborted) return;
  const renewal = await authorization.renew();
  if (renewal.kind === "refused") throw new AccessEnded(renewal.response.status);
  if (renewal.kind === "replaced") throw new Error("the repository changed while its response was prepared");
}
