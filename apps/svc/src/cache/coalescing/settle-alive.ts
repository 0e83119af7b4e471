import { isUploadPackResult } from "../../upstream/upload-pack-type.ts";
import { AccessEnded, type FetchJob } from "../fetch-plan.ts";
import { canKeepAlive, drop, keptAlive, within } from "./keep-alive.ts";
import type { RepositoryReset } from "../repository-reset.ts";
import type { SettledAnswer } from "../mirror-responses.ts";

/**
 * Waits for a response that is being prepared. If that takes longer than the keepalive interval and the request allows
 * it, the response begins with keepalive packets. If the mirror cannot answer then, the code host's response follows
 * them. Access is confirmed before stored data follows them.
 */
export async function settleAlive({
  job,
  pending,
  signal,
  intervalMs,
  reset,
}: {
  readonly job: FetchJob;
  readonly pending: Promise<SettledAnswer>;
  readonly signal: AbortSignal;
  readonly intervalMs: number;
  readonly reset: RepositoryReset;
}): Promise<SettledAnswer> {
  if (job.fetch === undefined || !canKeepAlive(job.fetch)) return await pending;
  const soon = await within(pending, intervalMs);
  if (soon !== undefined) return soon;
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
    if (settled.kind === "relay" || settled.kind === "busy") throw new Error("the code host gives no pack");
    if (settled.kind === "unrelated") await reset.startAnew(job.repository);
    const answer = await job.upstream.fetch(job.body, signal);
    if (!isUploadPackResult(answer)) throw new Error("the code host gives no pack");
    return answer.chunks;
  });
  chunks.catch(() => undefined);
  return { kind: "begun", chunks: keptAlive(chunks, intervalMs), asked: true, keptAlive: true };
}

/** Confirms access before cached data follows keepalive packets. @throws AccessEnded, GitError */
async function confirm({ gone, authorization }: FetchJob): Promise<void> {
  // The response is then for those who joined, and each of them is confirmed on its own.
  if (gone.aborted) return;
  const renewal = await authorization.renew();
  if (renewal.kind === "refused") throw new AccessEnded(renewal.answer.status);
}
