import { checkAdoption } from "./adoption-job.ts";
import { compareChecksums } from "./checksum-job.ts";
import { checkCommitGraph } from "./commit-graph-job.ts";
import { checkConnectivity } from "./connectivity-job.ts";
import { findDamage } from "./damage-job.ts";
import type { Job, JobResults } from "./job.ts";
import { repackInThread } from "./repack-job.ts";
import { checkSeedFiles } from "./seed-check-job.ts";
import { makeSeedInThread } from "./seed-job.ts";

/** Runs a job in the calling thread. @throws the failure of the job */
export async function runJob(job: Job): Promise<JobResults[Job["kind"]]> {
  switch (job.kind) {
    case "connectivity":
      return await checkConnectivity(job);
    case "checksum":
      return await compareChecksums(job);
    case "repack":
      return await repackInThread(job);
    case "seed":
      return await makeSeedInThread(job);
    case "seed_check":
      return await checkSeedFiles(job);
    case "adoption":
      return checkAdoption(job);
    case "commit_graph":
      return checkCommitGraph(job);
    case "damage":
      return await findDamage(job);
  }
}
