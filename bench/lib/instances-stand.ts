import { join } from "node:path";
import {
  cpuSecondsOf,
  freePort,
  startSvc,
  type CodeHostProcess,
  type Postgres,
  type S3Server,
  type Svc,
} from "@devplat/testkit";
import { startBalancer } from "../../tools/start/instances/balancer.ts";

/** Things that instances share. */
export interface SharedParts {
  readonly codeHost: CodeHostProcess;
  readonly postgres: Postgres;
  readonly server: S3Server;
  /** Folder for the data of the instances. */
  readonly work: string;
}

/** Several instances with an empty database, an empty prefix of the bucket, and nginx in front. */
export interface Instances {
  readonly all: readonly Svc[];
  /** Address of nginx. */
  readonly url: string;
  readonly balancerPid: number;
  /** CPU seconds of all instances so far. */
  cpuSeconds(): number;
  /** Sum of a metric over the instances. @param line beginning of its lines, such as `svc_cache_bytes_total{source="object"}` */
  sum(line: string): Promise<number>;
  stop(): Promise<void>;
}

/** @param name names database, prefix and folders. @param byRepository see startBalancer */
export async function startInstances(
  { codeHost, postgres, server, work }: SharedParts,
  {
    name,
    count,
    byRepository,
  }: { readonly name: string; readonly count: number; readonly byRepository: boolean },
): Promise<Instances> {
  const dsn = await postgres.createDatabase();
  const env = {
    SVC_DATABASE_DRIVER: "postgres",
    SVC_DATABASE_DSN: dsn,
    SVC_ENCRYPTION_KEY: "5a".repeat(32),
    SVC_CACHE_STORAGE_PATH: name,
    SVC_CACHE_OBJECT_BUCKET: server.bucket,
    SVC_CACHE_OBJECT_REGION: server.region,
    SVC_CACHE_OBJECT_ENDPOINT: server.endpoint,
    SVC_CACHE_OBJECT_ACCESS_KEY_ID: server.accessKeyId,
    SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: server.secretAccessKey,
  };
  const all: Svc[] = [];
  for (let at = 0; at < count; at++)
    all.push(await startSvc({ codeHost, dataDir: join(work, `${name}-${at}`), env }));
  const ports = all.map(({ url }) => Number(new URL(url).port));
  const balancer = await startBalancer(await freePort(), ports, byRepository);
  return {
    all,
    url: balancer.url,
    balancerPid: balancer.pid,
    cpuSeconds: () => all.reduce((sum, { pid }) => sum + cpuSecondsOf(pid).own, 0),
    sum: async (line) => {
      let sum = 0;
      for (const { metricsUrl } of all) {
        const text = await (await fetch(metricsUrl)).text();
        for (const each of text.split("\n")) if (each.startsWith(line)) sum += Number(each.split(" ").at(-1));
      }
      return sum;
    },
    stop: async () => {
      await balancer.stop();
      await Promise.all(all.map(async (svc) => svc.stop()));
    },
  };
}
