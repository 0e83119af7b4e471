/** One job of a {@link Share}. */
interface Job {
  /** Virtual time of the share at which it is done. */
  readonly finish: number;
  readonly order: number;
  readonly resume: () => void;
}

/** Limits of a {@link Share}. */
export interface ShareOptions {
  /** Maximum of the capacity that all its jobs together get, such as the number of threads of a process. */
  readonly limit: number;
  /** Maximum that one job gets, such as one core. */
  readonly perJob: number;
  /** Priority against other shares of the same resource when the capacity is short. Default 1. */
  readonly weight?: number;
}

/**
 * The jobs of one process, or of one kind, on a {@link SharedResource}. They get equal parts (processor sharing), which is near
 * to the time slices of a thread that serves many requests.
 */
export class Share {
  readonly limit: number;
  readonly perJob: number;
  readonly weight: number;
  /** Capacity that all jobs together get now. Set by the resource. */
  rate = 0;
  /** Work done since the last {@link resetWork}. */
  work = 0;
  /** Number of changes of the jobs or the rate. An event of an older number is not valid. */
  version = 0;
  readonly #jobs: Job[] = [];
  #virtual = 0;
  #updated = 0;
  #order = 0;

  constructor({ limit, perJob, weight = 1 }: ShareOptions) {
    this.limit = limit;
    this.perJob = perJob;
    this.weight = weight;
  }

  get jobs(): number {
    return this.#jobs.length;
  }

  /** Capacity that the jobs could use now. */
  get demand(): number {
    return Math.min(this.limit, this.#jobs.length * this.perJob);
  }

  /** Moves the work forward to this time, at the present rate. */
  advance(now: number): void {
    const elapsed = now - this.#updated;
    this.#updated = now;
    if (this.#jobs.length === 0 || elapsed <= 0) return;
    this.#virtual += (elapsed * this.rate) / this.#jobs.length;
    this.work += elapsed * this.rate;
  }

  add(amount: number, resume: () => void): void {
    insert(this.#jobs, { finish: this.#virtual + amount, order: this.#order++, resume });
  }

  /** Seconds until the first job is done; undefined: there is no job, or it does not advance. */
  untilFirst(): number | undefined {
    const first = this.#jobs.at(-1);
    if (first === undefined || this.rate <= 0) return undefined;
    return (Math.max(0, first.finish - this.#virtual) * this.#jobs.length) / this.rate;
  }

  /** Removes the first job. */
  takeFirst(): (() => void) | undefined {
    const job = this.#jobs.pop();
    if (job !== undefined) this.#virtual = Math.max(this.#virtual, job.finish);
    return job?.resume;
  }

  resetWork(): void {
    this.work = 0;
  }
}

/** Keeps the list in descending order, so that the first job to end is the last element. */
function insert(jobs: Job[], job: Job): void {
  let [low, high] = [0, jobs.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = jobs[middle]!;
    if (other.finish > job.finish || (other.finish === job.finish && other.order > job.order))
      low = middle + 1;
    else high = middle;
  }
  jobs.splice(low, 0, job);
}
