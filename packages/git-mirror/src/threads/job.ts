import type { PreparedRepack } from "@devplat/git-store";
import type { PreparedSeed } from "@devplat/git-store/seed";
import type { AdoptionJob, AdoptionReport } from "./adoption-job.ts";
import type { ChecksumJob } from "./checksum-job.ts";
import type { CommitGraphJob } from "./commit-graph-job.ts";
import type { ConnectivityJob } from "./connectivity-job.ts";
import type { DamageJob, DamageReport } from "./damage-job.ts";
import type { RepackJob } from "./repack-job.ts";
import type { SoundSeedFiles } from "../storage/seed.ts";
import type { SeedCheckJob } from "./seed-check-job.ts";
import type { SeedJob } from "./seed-job.ts";

/** Work on packs that takes seconds of CPU, so that it must not run in the thread that serves. */
export type Job =
  | ConnectivityJob
  | ChecksumJob
  | RepackJob
  | SeedJob
  | SeedCheckJob
  | DamageJob
  | AdoptionJob
  | CommitGraphJob;

export interface JobResults {
  readonly connectivity: void;
  readonly checksum: void;
  readonly repack: PreparedRepack | undefined;
  readonly seed: PreparedSeed | undefined;
  readonly seed_check: SoundSeedFiles;
  readonly damage: DamageReport;
  readonly adoption: AdoptionReport;
  readonly commit_graph: boolean;
}

/** Runs jobs, one after another. */
export interface JobRunner {
  /** @throws JobFailure if the job failed; another error if its thread ended */
  run<Kind extends Job>(job: Kind): Promise<JobResults[Kind["kind"]]>;
  /** Frees memory if no job runs. */
  rest(): Promise<void>;
}

/** Failure of a job. `code` is a code of git-store or of the system; undefined: packs do not match their checksums. */
export class JobFailure extends Error {
  readonly code: string | undefined;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.name = "JobFailure";
    this.code = code;
  }
}
