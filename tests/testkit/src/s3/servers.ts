import { hash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { makeCertificate } from "../certificate.ts";
import { TestkitError } from "../errors.ts";
import { freePort } from "../free-port.ts";
import { s3Program } from "../peer-programs.ts";
import { answers, startPeer, type Peer } from "../peer.ts";
import { run } from "../process.ts";
import { tempFolder } from "../temp-folder.ts";

/** A real S3 server on loopback over a folder, with one bucket. */
export interface S3Server {
  readonly name: "versitygw" | "minio";
  /** Address without a path. It stays the same after {@link restart}. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** The certificate that it shows, which is its own authority (PEM), valid for 127.0.0.1; only with `tls`. */
  readonly caFile: string | undefined;
  readonly pid: number;
  /** Ends the process; the data stays. */
  goAway(): Promise<void>;
  /** Starts the process again on the same port. */
  restart(): Promise<void>;
  /** Ends the process and removes the data. */
  stop(): Promise<void>;
}

export interface VersityGatewayOptions {
  /** Whether it speaks TLS. Default false. */
  readonly tls?: boolean;
  /** Users without rights, as key id and secret; {@link VersityGateway.setPolicy} gives them some. */
  readonly users?: Readonly<Record<string, string>>;
}

/** A real versitygw, which also has users and bucket policies. */
export interface VersityGateway extends S3Server {
  /** Replaces the policy of the bucket. `actions` by the user's key id, such as `s3:GetObject`. */
  setPolicy(actions: Readonly<Record<string, readonly string[]>>): Promise<void>;
}

const BUCKET = "tests";
const REGION = "us-east-1";
const ACCESS_KEY_ID = "AKIDOFTESTS";
const SECRET_ACCESS_KEY = "a/secret+of=the-tests";

/** Starts versitygw: Go, conditions on every write. */
export async function startVersityGateway(options: VersityGatewayOptions = {}): Promise<VersityGateway> {
  const program = s3Program("versitygw");
  const folder = await tempFolder("versitygw");
  const [data, sidecar, iam] = ["data", "sidecar", "iam"].map((name) => join(folder.path, name));
  for (const each of [data, sidecar, iam]) await mkdir(each ?? "");
  await mkdir(join(data ?? "", BUCKET));
  const certificate = options.tls === true ? await makeCertificate(folder.path, ["IP:127.0.0.1"]) : undefined;
  const caFile = certificate?.certFile;
  const access = ["--access", ACCESS_KEY_ID, "--secret", SECRET_ACCESS_KEY];
  const server = await serve("versitygw", caFile, (port) => ({
    command: program,
    args: [
      "--port",
      `127.0.0.1:${port}`,
      ...access,
      "--region",
      REGION,
      "--quiet",
      "--keep-alive",
      "--iam-dir",
      iam ?? "",
      ...(certificate === undefined ? [] : ["--cert", certificate.certFile, "--key", certificate.keyFile]),
      // A sidecar needs no extended attributes of the file system.
      "posix",
      "--sidecar",
      sidecar ?? "",
      data ?? "",
    ],
  }));
  for (const [user, secret] of Object.entries(options.users ?? {})) {
    const admin = [
      "admin",
      ...access,
      "--region",
      REGION,
      "--allow-insecure",
      "--endpoint-url",
      server.endpoint,
    ];
    await perform(program, [...admin, "create-user", "-a", user, "-s", secret, "-r", "user"]);
  }
  return {
    ...server,
    get pid() {
      return server.pid;
    },
    async setPolicy(actions) {
      const statements = Object.entries(actions).flatMap(([user, names]) => [
        statement(user, names.filter(isOfBucket), `arn:aws:s3:::${BUCKET}`),
        statement(
          user,
          names.filter((name) => !isOfBucket(name)),
          `arn:aws:s3:::${BUCKET}/*`,
        ),
      ]);
      const policy = { Version: "2012-10-17", Statement: statements.flat() };
      const body = JSON.stringify(policy);
      const user = ["--user", `${ACCESS_KEY_ID}:${SECRET_ACCESS_KEY}`];
      const signed = [
        "--aws-sigv4",
        `aws:amz:${REGION}:s3`,
        "-H",
        `x-amz-content-sha256: ${hash("sha256", body)}`,
      ];
      const tls = caFile === undefined ? [] : ["--cacert", caFile];
      const send = ["-X", "PUT", "--data-binary", body, `${server.endpoint}/${BUCKET}?policy=`];
      await perform("curl", ["-sS", "--fail-with-body", ...tls, ...user, ...signed, ...send]);
    },
    async stop() {
      await server.goAway();
      await folder.remove();
    },
  };
}

/** Starts MinIO, a server that many use. It ignores the condition of a delete. */
export async function startMinio(): Promise<S3Server> {
  const folder = await tempFolder("minio");
  const data = join(folder.path, "data");
  await mkdir(join(data, BUCKET), { recursive: true });
  const env = {
    MINIO_ROOT_USER: ACCESS_KEY_ID,
    MINIO_ROOT_PASSWORD: SECRET_ACCESS_KEY,
    MINIO_BROWSER: "off",
    MINIO_UPDATE: "off",
    HOME: folder.path,
  };
  const server = await serve("minio", undefined, (port) => ({
    command: s3Program("minio"),
    args: ["server", "--quiet", "--address", `127.0.0.1:${port}`, data],
    env,
  }));
  return {
    ...server,
    get pid() {
      return server.pid;
    },
    async stop() {
      await server.goAway();
      await folder.remove();
    },
  };
}

async function serve(
  name: S3Server["name"],
  caFile: string | undefined,
  commandAt: (port: number) => { command: string; args: string[]; env?: NodeJS.ProcessEnv },
): Promise<Omit<S3Server, "stop">> {
  const scheme = caFile === undefined ? "http" : "https";
  let port = 0;
  const start = (choose: () => Promise<number>): Promise<Peer> =>
    startPeer(name, async () => {
      port = await choose();
      const isReady = (): Promise<boolean> =>
        caFile === undefined ? answers(`http://127.0.0.1:${port}`, isUp) : accepts(port, caFile);
      const { command, args, env } = commandAt(port);
      return { command, args, options: { env: { PATH: process.env["PATH"], ...env } }, isReady };
    });
  let peer = await start(freePort);
  return {
    name,
    endpoint: `${scheme}://127.0.0.1:${port}`,
    region: REGION,
    bucket: BUCKET,
    accessKeyId: ACCESS_KEY_ID,
    secretAccessKey: SECRET_ACCESS_KEY,
    caFile,
    get pid() {
      return peer.pid;
    },
    async goAway() {
      await peer.stop();
    },
    async restart() {
      await peer.stop();
      peer = await start(() => Promise.resolve(port));
    },
  };
}

const isOfBucket = (action: string): boolean => /^s3:(?:ListBucket|GetBucket)/.test(action);

function statement(user: string, actions: readonly string[], resource: string): object[] {
  if (actions.length === 0) return [];
  return [{ Effect: "Allow", Principal: { AWS: [user] }, Action: actions, Resource: [resource] }];
}

/** MinIO responds with 503 until it is ready. */
const isUp = (status: number): boolean => status < 500;

async function accepts(port: number, caFile: string): Promise<boolean> {
  const args = ["-s", "-o", "/dev/null", "--cacert", caFile, `https://127.0.0.1:${port}/`];
  return (await run("curl", args)).code === 0;
}

async function perform(command: string, args: readonly string[]): Promise<void> {
  const done = await run(command, [...args], { env: { PATH: process.env["PATH"] } });
  if (done.code === 0) return;
  const said = (done.stdout + done.stderr).slice(-500);
  throw new TestkitError("command_failed", `${command} ended with ${done.code}: ${said}`);
}
