/**
 * `npm run start:instances`: several instances of the service on this machine, with what they share: a Postgres, an S3 bucket
 * and nginx in front, and a git server as the code host. INSTANCES (default 2) sets their number. All data is temporary, except
 * logs and the files to paste from in `data/instances/`, or START_DATA_DIR. Ctrl-C stops everything.
 */
import { randomBytes } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { startCodeHost, startPostgres, startVersityGateway } from "@devplat/testkit";
import { developmentSession } from "../development-session.ts";
import { freePortFrom } from "../ports.ts";
import { untilReady } from "../program.ts";
import { startBalancer } from "./balancer.ts";
import { Instance } from "./instance.ts";
import { environment, sheet } from "./sheet.ts";

const root = resolve(import.meta.dirname, "../../..");
const data = resolve(root, process.env["START_DATA_DIR"] ?? "data/instances");
const shown = relative(root, data).startsWith("..") ? data : relative(root, data);
/** More of them only share the same cores. */
const MAX_INSTANCES = 8;
const REPOSITORY = { owner: "acme", name: "widgets" } as const;
/** Token of the one user at the code host, who can push. */
const HOST_TOKEN = "token-at-the-code-host";

async function main(): Promise<number> {
  const count = readCount(process.env["INSTANCES"]);
  await mkdir(data, { recursive: true, mode: 0o700 });
  await using resources = new AsyncDisposableStack();
  const own = <T extends { stop(): Promise<unknown> }>(resource: T): T => {
    resources.defer(async () => void (await resource.stop()));
    return resource;
  };
  const interrupted = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, interrupted.resolve);

  process.stderr.write("Starting a code host, Postgres and an S3 server ...\n");
  const codeHost = own(await startCodeHost());
  await codeHost.addRepository(REPOSITORY.owner, REPOSITORY.name);
  codeHost.addUser("dev", HOST_TOKEN, { repositories: [`${REPOSITORY.owner}/${REPOSITORY.name}`] });
  const postgres = own(await startPostgres());
  const bucket = own(await startVersityGateway());
  const shared = {
    SVC_HOST_URL: codeHost.url,
    SVC_HOST_API_URL: codeHost.apiUrl,
    SVC_DATABASE_DRIVER: "postgres",
    SVC_DATABASE_DSN: await postgres.createDatabase(),
    SVC_ENCRYPTION_KEY: randomBytes(32).toString("hex"),
    SVC_CACHE_STORAGE_PATH: "svc",
    SVC_CACHE_OBJECT_BUCKET: bucket.bucket,
    SVC_CACHE_OBJECT_REGION: bucket.region,
    SVC_CACHE_OBJECT_ENDPOINT: bucket.endpoint,
    SVC_CACHE_OBJECT_ACCESS_KEY_ID: bucket.accessKeyId,
    SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: bucket.secretAccessKey,
  };
  const balancerPort = await freePortFrom(8070);
  const baseUrl = `http://localhost:${balancerPort}`;
  const instances: Instance[] = [];
  for (let index = 0; index < count; index++) {
    const name = String.fromCodePoint("a".codePointAt(0)! + index);
    instances.push(
      own(
        new Instance({
          name,
          root,
          folder: join(data, name),
          port: await freePortFrom(8081 + index * 10),
          metricsPort: await freePortFrom(9141 + index * 10),
          env: { ...shared, SVC_SERVER_BASE_URL: baseUrl },
        }),
      ),
    );
  }
  process.stderr.write(`Starting ${count} instances (logs: ${shown}/NAME/svc.log) ...\n`);
  for (const instance of instances) await instance.start();
  const balancer = own(
    await startBalancer(
      balancerPort,
      instances.map(({ port }) => port),
    ),
  );
  if (!(await untilReady(`${balancer.url}/readyz`, interrupted.promise))) {
    throw new Error(`no instance is ready; ${shown}/a/svc.log tells more`);
  }
  const parts = { root, data, shown, baseUrl, instances, codeHost: codeHost.url, hostToken: HOST_TOKEN };
  const token = await developmentSession(`http://127.0.0.1:${instances[0]?.port}`, {
    host_token: HOST_TOKEN,
  });
  await writeFile(join(data, "env"), environment(parts, token), { mode: 0o600 });
  process.stdout.write(sheet(parts, REPOSITORY));
  await interrupted.promise;
  process.stderr.write("Stopping ...\n");
  await rm(join(data, "env"), { force: true });
  return 0;
}

function readCount(text: string | undefined): number {
  const count = Number(text ?? 2);
  if (Number.isInteger(count) && count >= 1 && count <= MAX_INSTANCES) return count;
  throw new Error(`INSTANCES is "${text}": expected a number from 1 to ${MAX_INSTANCES}`);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
