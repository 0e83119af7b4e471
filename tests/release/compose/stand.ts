import { randomInt } from "node:crypto";
import { appendFile, cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  freePort,
  repositories,
  run,
  startCodeHost,
  startDockerd,
  tempFolder,
  TestkitError,
  type CodeHost,
  type Dockerd,
} from "@devplat/testkit";
import { startTcpRelay } from "../../interop/tcp-relay.ts";
import { IMAGES, makeImages } from "./images.ts";

const DEPLOY = join(import.meta.dirname, "../../../deploy/compose");
/** Networks of the range for benchmarks (RFC 2544) that a test may choose from. */
const NETWORKS = 256;
const START_MS = 240_000;

/** Last part of the address of each instance. */
const HOSTS = { "svc-a": 11, "svc-b": 12 } as const;
export type InstanceName = keyof typeof HOSTS;
export const INSTANCES: readonly InstanceName[] = ["svc-a", "svc-b"];

/** Containers of deploy/compose, by a real engine and docker-compose, in front of a code host of the test. */
export interface ComposeStand {
  /** Address of nginx. */
  readonly url: string;
  readonly tlsUrl: string;
  /** Address of an instance in the network of the containers. */
  instanceUrl(name: InstanceName): string;
  /** The folder that an administrator has. */
  readonly folder: string;
  readonly docker: Dockerd;
  readonly codeHost: CodeHost;
  /** Runs docker-compose and insists on success. */
  compose(...args: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

export async function makeComposeStand(): Promise<ComposeStand> {
  await using started = new AsyncDisposableStack();
  const folder = await tempFolder("compose");
  started.defer(() => folder.remove());
  const work = join(folder.path, "compose");
  const codeHost = await startCodeHost();
  started.defer(() => codeHost.stop());
  await codeHost.addRepository("org", "r", { private: true, build: repositories.merges });
  codeHost.addUser("ada", "host-token", { repositories: ["org/r"] });
  codeHost.oauth.settings.consent = { login: "ada" };
  const docker = await startDockerd();
  started.defer(() => docker.stop());
  await makeImages(docker, folder.path);

  await cp(DEPLOY, work, { recursive: true });
  const [port, tlsPort, hostPort] = [await freePort(), await freePort(), await freePort()];
  const subnet = `198.18.${randomInt(NETWORKS)}`;
  const url = `http://127.0.0.1:${port}`;
  const made = await run("sh", [join(work, "init.sh"), url]);
  if (made.code !== 0) throw TestkitError.failed("init.sh", made.stderr);
  const settings = {
    ...IMAGES,
    SVC_PUBLISH: `127.0.0.1:${port}`,
    SVC_PUBLISH_TLS: `127.0.0.1:${tlsPort}`,
    SVC_SUBNET: subnet,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  await appendFile(join(work, ".env"), lines.join(""));
  const host = `http://${subnet}.1:${hostPort}`;
  const hostConfig = {
    client_id: codeHost.oauth.clientId,
    url: host,
    api_url: host + new URL(codeHost.apiUrl).pathname,
  };
  await appendFile(join(work, "svc.yaml"), `\nadmins: [ada]\nhost: ${JSON.stringify(hostConfig)}\n`);
  // The file is there, and closed: only its owner replaces it.
  const secret = join(work, "secrets/host.client_secret");
  await run("chmod", ["u+w", secret]);
  await writeFile(secret, codeHost.oauth.clientSecret);

  const env = { PATH: process.env["PATH"], HOME: folder.path, DOCKER_HOST: `unix://${docker.socket}` };
  const compose = async (...args: readonly string[]): Promise<string> => {
    const done = await run("docker-compose", args, { cwd: work, env, timeoutMs: START_MS });
    if (done.code === 0) return done.stdout;
    const logs = await run("docker-compose", ["logs", "--tail", "30"], { cwd: work, env });
    throw TestkitError.failed(`docker-compose ${args.join(" ")}`, done.stderr + logs.stdout);
  };
  // Makes the network, of which this machine has the first address.
  await compose("up", "--no-start");
  started.defer(async () => void (await compose("down", "--volumes", "--timeout", "20")));
  const relay = await startTcpRelay(Number(new URL(codeHost.url).port), {
    host: `${subnet}.1`,
    port: hostPort,
  });
  started.defer(() => relay.stop());
  const running = started.move();
  return {
    url,
    tlsUrl: `https://localhost:${tlsPort}`,
    instanceUrl: (name) => `http://${subnet}.${HOSTS[name]}:8080`,
    folder: work,
    docker,
    codeHost,
    compose,
    stop: () => running.disposeAsync(),
  };
}
