import type { Kind } from "./kinds.ts";

/** One finished job. */
export interface Finished {
  readonly kind: Kind;
  readonly seconds: number;
  /** Seconds without the transfer at the client's own rate. */
  readonly delay: number;
}

/** Sums over all instances since the last {@link reset}. */
export class Counters {
  arrived = 0;
  served = 0;
  refused = 0;
  hits = 0;
  misses = 0;
  egress = 0;
  /** Requests to the bucket. */
  gets = 0;
  puts = 0;
  bucketRead = 0;
  bucketWritten = 0;
  transactions = 0;
  /** Reads of refs at the code host: `info/refs`, `ls-refs` and probes. */
  hostReads = 0;
  hostFetches = 0;
  hostBytes = 0;
  diskRead = 0;
  diskWritten = 0;
  balancerCpu = 0;
  finished: Finished[] = [];
  readonly readsOfRepository = new Map<number, number>();
  readonly pushesOfRepository = new Map<number, number>();

  reset(): void {
    this.arrived = this.served = this.refused = this.hits = this.misses = this.egress = 0;
    this.gets = this.puts = this.bucketRead = this.bucketWritten = this.transactions = 0;
    this.hostReads = this.hostFetches = this.hostBytes = 0;
    this.diskRead = this.diskWritten = this.balancerCpu = 0;
    this.finished = [];
    this.readsOfRepository.clear();
    this.pushesOfRepository.clear();
  }
}
