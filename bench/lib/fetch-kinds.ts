import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeCommandRequest } from "@devplat/git-protocol";
import { git, startCodeHostProcess, startSvc, type CodeHostProcess, type Svc } from "@devplat/testkit";
import { DEFAULTS } from "../../apps/svc/src/config/defaults.ts";
import { Administration } from "./administration.ts";
import { filled } from "./filled.ts";
import { cpuDuring } from "./fine-cpu.ts";
import { postRaw, recordFullFetch, recordLsRefs } from "./raw-fetch.ts";
import { workFolder, type BenchRepository } from "./repositories.ts";
import type { Row } from "./row.ts";
import { summarize } from "./statistics.ts";

/** Different requests of one kind in a round: each is a first one for the service. */
export const FIRSTS = 3;
/** Requests in a sample of a repeated request. */
export const REPEATED = 20;

/** A kind of `fetch`. */
export interface FetchKind {
  readonly name: string;
  /** Limits of our CPU over that of git. */
  readonly first: number;
  readonly repeated: number;
  /** Arguments of a `fetch`, others for each turn. */
  readonly args: (turn: number) => readonly string[];
}

/** A code host and the service in front of it, for fetches of any kind. */
export class FetchBench {
  readonly upstream: CodeHostProcess;
  readonly svc: Svc;
  readonly work: string;
  readonly #administration: Administration;
  readonly #rounds: number;

  private constructor(
    parts: { upstream: CodeHostProcess; svc: Svc; work: string; administration: Administration },
    rounds: number,
  ) {
    this.upstream = parts.upstream;
    this.svc = parts.svc;
    this.work = parts.work;
    this.#administration = parts.administration;
    this.#rounds = rounds;
  }

  /** @param name of the benchmark, and of the folder of its files */
  static async start(name: string, rounds: number): Promise<FetchBench> {
    const work = await workFolder(name);
    const upstream = await startCodeHostProcess();
    // The default; the testkit sets 0.
    const env = { SVC_CACHE_REPACK_IDLE_SECONDS: String(DEFAULTS.repackIdleSeconds) };
    const svc = await startSvc({ codeHost: upstream, env });
    const administration = await Administration.signIn(svc.url);
    return new FetchBench({ upstream, svc, work, administration }, rounds);
  }

  async stop(): Promise<void> {
    await this.svc.stop();
    await this.upstream.stop();
  }

  /** Puts a repository on the code host, with bitmaps, and fills the mirror. */
  async add(repository: BenchRepository): Promise<BenchedRepository> {
    const { upstream, svc, work } = this;
    const { name } = repository;
    await upstream.addRepository("bench", name, {
      build: async (dir) => {
        await git(["clone", "-q", "--mirror", repository.path, dir], { timeoutMs: 600_000 });
        await git(["-C", dir, "repack", "-qadb"], { timeoutMs: 600_000 });
        await git(["-C", dir, "config", "uploadpack.allowFilter", "true"]);
      },
    });
    const direct = `${upstream.url}/bench/${name}.git`;
    const through = `${svc.url}/bench/${name}.git`;
    const id = await this.#administration.list("bench", name);
    const lsRefs = await recordLsRefs(work);
    await postRaw(through, lsRefs);
    await postRaw(through, await recordFullFetch(direct, work, name));
    await filled(this.#administration, id, svc.pid);
    return new BenchedRepository(this, { name, direct, through, lsRefs }, this.#rounds);
  }
}

/** A repository that the service has in its mirror. */
export class BenchedRepository {
  readonly through: string;
  readonly #bench: FetchBench;
  readonly #name: string;
  readonly #direct: string;
  readonly #lsRefs: string;
  readonly #rounds: number;
  #turn = 0;

  constructor(
    bench: FetchBench,
    { name, direct, through, lsRefs }: { name: string; direct: string; through: string; lsRefs: string },
    rounds: number,
  ) {
    this.#bench = bench;
    this.#name = name;
    this.#direct = direct;
    this.through = through;
    this.#lsRefs = lsRefs;
    this.#rounds = rounds;
  }

  /** Writes a request that no one has sent yet. @returns its file */
  async next(kind: FetchKind): Promise<string> {
    const turn = this.#turn++;
    const file = join(this.#bench.work, `${this.#name}-${kind.name.replaceAll(/\W/g, "-")}-${turn}`);
    const args = [...kind.args(turn), "ofs-delta", "include-tag", "no-progress", "done"];
    await writeFile(
      file,
      encodeCommandRequest({ command: "fetch", capabilities: ["object-format=sha1"], args }),
    );
    return file;
  }

  /** CPU of the server for each request of a kind: a first one, the same repeated, and directly at the code host. */
  async measure(kind: FetchKind): Promise<Row[]> {
    const { svc, upstream } = this.#bench;
    this.#turn = 0;
    await this.#firstUse(await this.next(kind));
    const [first, repeated, reference]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < this.#rounds; round++) {
      const files: string[] = [];
      while (files.length < FIRSTS) files.push(await this.next(kind));
      for (const file of files) first.push(await this.#firstUse(file));
      const before = upstream.cpuSeconds().children;
      for (let turns = 0; turns < 2; turns++) for (const file of files) await postRaw(this.#direct, file);
      reference.push((upstream.cpuSeconds().children - before) / FIRSTS / 2);
      const last = files.at(-1)!;
      await this.#firstUse(last);
      await sleep(1000);
      await postRaw(this.through, this.#lsRefs);
      const cpu = await cpuDuring(svc.pid, async () => {
        for (let i = 0; i < REPEATED; i++) await postRaw(this.through, last);
      });
      repeated.push(cpu / REPEATED);
    }
    const against = { unit: "s", reference: summarize(reference), referenceName: "direct" };
    const what = `${this.#name}: ${kind.name}`;
    return [
      {
        what: `${what}, first, server CPU`,
        ours: summarize(first),
        ...against,
        target: { atMost: kind.first },
      },
      {
        what: `${what}, repeated, server CPU`,
        ours: summarize(repeated),
        ...against,
        target: { atMost: kind.repeated },
      },
    ];
  }

  async #firstUse(file: string): Promise<number> {
    await postRaw(this.through, this.#lsRefs);
    return cpuDuring(this.#bench.svc.pid, () => postRaw(this.through, file));
  }
}
