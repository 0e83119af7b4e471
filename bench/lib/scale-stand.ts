import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import {
  git,
  randomFrom,
  startCodeHostProcess,
  startPostgres,
  startS3Proxy,
  startVersityGateway,
  type CodeHostProcess,
  type Postgres,
  type S3Proxy,
  type VersityGateway,
} from "@devplat/testkit";
import { Administration } from "./administration.ts";
import { idle } from "./filled.ts";
import { startInstances, type Instances } from "./instances-stand.ts";
import { JobClient } from "./job-client.ts";
import { treeCpuSeconds } from "./process-tree.ts";
import { PushedRepository } from "./pushes.ts";
import { expressRepository, workFolder } from "./repositories.ts";

/**
 * Programs of the stand whose CPU is counted. `database` is Postgres and the S3 server. `client` is this process, with the
 * counting proxy.
 */
export type Program = "instances" | "balancer" | "codeHost" | "database" | "client";

export const PROGRAMS: readonly Program[] = ["instances", "balancer", "codeHost", "database", "client"];

/** CPU seconds since the start of each program. */
export type ProgramCpu = Readonly<Record<Program, number>>;

/** Requests since the start of the stand. */
export interface RequestCounts {
  readonly gets: number;
  readonly puts: number;
  /** Requests of the instances to the code host. */
  readonly host: number;
}

/** Seconds after which Postgres has written its own statistics, also those of connections that do nothing. */
const STATISTICS_SECONDS = 12;

/** The parts of `npm run start:instances` with counters: instances, nginx, Postgres, an S3 server, a code host. */
export class ScaleStand {
  readonly client = new JobClient();
  readonly repositories: readonly PushedRepository[];
  readonly #codeHost: CodeHostProcess;
  readonly #server: VersityGateway;
  readonly #proxy: S3Proxy;
  readonly #postgres: Postgres;
  readonly #work: string;
  #instances: Instances | undefined;

  private constructor(
    repositories: readonly PushedRepository[],
    parts: {
      codeHost: CodeHostProcess;
      server: VersityGateway;
      proxy: S3Proxy;
      postgres: Postgres;
      work: string;
    },
  ) {
    this.repositories = repositories;
    this.#codeHost = parts.codeHost;
    this.#server = parts.server;
    this.#proxy = parts.proxy;
    this.#postgres = parts.postgres;
    this.#work = parts.work;
  }

  /** Starts everything but the instances. @param count of copies of the repository express */
  static async start(name: string, count: number): Promise<ScaleStand> {
    const express = await expressRepository();
    if (express === undefined) throw new Error("the bundle of express is not there");
    const work = await workFolder(name);
    const [codeHost, server, postgres] = [
      await startCodeHostProcess(),
      await startVersityGateway(),
      await startPostgres(),
    ];
    const proxy = await startS3Proxy(server.endpoint);
    const repositories: PushedRepository[] = [];
    for (let at = 0; at < count; at++) {
      const { path } = await codeHost.addRepository("bench", `r${at}`, {
        build: async (dir) => {
          await git(["clone", "-q", "--mirror", express, dir]);
          await git(["-C", dir, "config", "uploadpack.allowFilter", "true"]);
        },
      });
      repositories.push(await PushedRepository.open(path, randomFrom(at + 1)));
    }
    return new ScaleStand(repositories, { codeHost, server, proxy, postgres, work });
  }

  /** Starts instances with an empty cache. Those with an earlier name find the data of that one in the bucket. */
  async startInstances(name: string, count: number): Promise<Instances> {
    for (let at = 0; at < count; at++)
      await rm(join(this.#work, `${name}-${at}`), { recursive: true, force: true });
    const server = { ...this.#server, endpoint: this.#proxy.endpoint };
    const parts = { codeHost: this.#codeHost, postgres: this.#postgres, work: this.#work, server };
    const stand = await startInstances(parts, { name, count, byRepository: true });
    this.#instances = stand;
    const administration = await Administration.signIn(stand.all[0]!.url);
    for (let at = 0; at < this.repositories.length; at++) await administration.list("bench", `r${at}`);
    return stand;
  }

  async stopInstances(): Promise<void> {
    await this.#instances?.stop();
    this.#instances = undefined;
  }

  /** Address of a repository at the balancer. */
  urlOf(repository: number): string {
    return `${this.#instances?.url}/bench/r${repository}.git`;
  }

  /** Waits until all instances are idle. */
  async idle(): Promise<void> {
    for (const { pid } of this.#instances?.all ?? []) await idle(pid);
  }

  cpu(): ProgramCpu {
    const instances = this.#instances!;
    const usage = process.cpuUsage();
    return {
      instances: instances.cpuSeconds(),
      balancer: treeCpuSeconds(instances.balancerPid),
      codeHost: treeCpuSeconds(this.#codeHost.pid),
      database: treeCpuSeconds(this.#postgres.pid) + treeCpuSeconds(this.#server.pid),
      client: (usage.user + usage.system) / 1e6,
    };
  }

  async requests(): Promise<RequestCounts> {
    const { counts } = this.#proxy;
    return {
      gets: counts.get + counts.head + counts.list,
      puts: counts.put + counts.create + counts.part + counts.complete,
      host: (await this.#instances?.sum("svc_upstream_request_duration_seconds_count")) ?? 0,
    };
  }

  /** Committed transactions of all databases, when Postgres has counted them. */
  async transactions(): Promise<number> {
    await sleep(STATISTICS_SECONDS * 1000);
    const client = new pg.Client({ connectionString: this.#postgres.dsn });
    await client.connect();
    const { rows } = await client.query<{ sum: string }>(
      "SELECT sum(xact_commit) AS sum FROM pg_stat_database",
    );
    await client.end();
    return Number(rows[0]?.sum);
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.stopInstances();
    await this.#proxy.stop();
    await this.#postgres.stop();
    await this.#server.stop();
    await this.#codeHost.stop();
    await rm(this.#work, { recursive: true, force: true });
  }
}
