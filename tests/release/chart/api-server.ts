import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  freePort,
  peerCache,
  pinsKey,
  run,
  startPeer,
  tempFolder,
  TestkitError,
  type Finished,
} from "@devplat/testkit";

const SOURCES = join(import.meta.dirname, "../../../tools/kube-apiserver");
/** 8 minutes of CPU, on cores that other tests may use, too. */
const BUILD_LIMIT_MS = 14 * 60_000;
const PROGRAMS = {
  "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
  etcd: "go.etcd.io/etcd/server/v3",
} as const;

/** A real API server of Kubernetes with its etcd. No controller and no node: objects are admitted and stored, and nothing runs. */
export interface ApiServer {
  readonly kubeconfig: string;
  /** Runs kubectl as an administrator. */
  kubectl(args: readonly string[], input?: string): Promise<Finished>;
  stop(): Promise<void>;
}

export async function startApiServer(): Promise<ApiServer> {
  const programs = await builds();
  await using started = new AsyncDisposableStack();
  const folder = await tempFolder("api-server");
  started.defer(() => folder.remove());
  const at = (name: string): string => join(folder.path, name);
  const etcdUrl = { client: "", peer: "" };
  const etcd = await startPeer("etcd", async () => {
    etcdUrl.client = `http://127.0.0.1:${await freePort()}`;
    etcdUrl.peer = `http://127.0.0.1:${await freePort()}`;
    const { client, peer } = etcdUrl;
    const args = {
      "data-dir": at("etcd"),
      "listen-client-urls": client,
      "advertise-client-urls": client,
      "listen-peer-urls": peer,
      "initial-advertise-peer-urls": peer,
      "initial-cluster": `default=${peer}`,
    };
    return {
      command: join(programs, "etcd"),
      args: flags(args),
      isReady: (output) => output.includes("ready to serve client requests"),
    };
  });
  started.defer(async () => void (await etcd.stop()));
  const key = await run("openssl", ["genrsa", "-out", at("accounts.key"), "2048"]);
  if (key.code !== 0) throw TestkitError.failed("openssl", key.stderr);
  await writeFile(at("tokens.csv"), "administrator,admin,1,system:masters\n");
  const kubeconfig = at("kubeconfig");
  const kubectl: ApiServer["kubectl"] = (args, input) =>
    run("kubectl", ["--kubeconfig", kubeconfig, ...args], input === undefined ? {} : { input });
  const server = await startPeer("kube-apiserver", async () => {
    const port = await freePort();
    await writeFile(kubeconfig, JSON.stringify(configOf(port, at("certificates/apiserver.crt"))), {
      mode: 0o600,
    });
    const args = {
      "etcd-servers": etcdUrl.client,
      "bind-address": "127.0.0.1",
      "secure-port": String(port),
      "cert-dir": at("certificates"),
      "token-auth-file": at("tokens.csv"),
      "authorization-mode": "RBAC",
      "service-account-issuer": "https://kubernetes.default.svc",
      "service-account-key-file": at("accounts.key"),
      "service-account-signing-key-file": at("accounts.key"),
      "service-cluster-ip-range": "10.0.0.0/24",
      // Its address is one of loopback, which no object can hold.
      "endpoint-reconciler-type": "none",
    };
    return {
      command: join(programs, "kube-apiserver"),
      args: flags(args),
      isReady: async () => (await kubectl(["get", "--raw", "/readyz"])).stdout === "ok",
    };
  });
  started.defer(async () => void (await server.stop()));
  const running = started.move();
  return { kubeconfig, kubectl, stop: () => running.disposeAsync() };
}

function configOf(port: number, authority: string): object {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: "test",
        cluster: {
          server: `https://127.0.0.1:${port}`,
          "certificate-authority": authority,
          "tls-server-name": "kubernetes",
        },
      },
    ],
    users: [{ name: "admin", user: { token: "administrator" } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
    "current-context": "test",
  };
}

const flags = (values: Readonly<Record<string, string>>): string[] =>
  Object.entries(values).map(([name, value]) => `--${name}=${value}`);

/** Builds the programs once for their pins, which takes some minutes. @returns their folder */
async function builds(): Promise<string> {
  const folder = join(peerCache(), `kube-apiserver-${pinsKey("tools/kube-apiserver", ["go.mod", "go.sum"])}`);
  if (existsSync(folder)) return folder;
  await mkdir(peerCache(), { recursive: true });
  const part = await mkdtemp(`${folder}.`);
  try {
    const version = await pinnedVersion();
    const [major, minor] = version.split(".");
    const set = (name: string, value = ""): string => `-X k8s.io/component-base/version.git${name}=${value}`;
    const linker = ["-s -w", set("Version", `v${version}`), set("Major", major), set("Minor", minor)].join(
      " ",
    );
    for (const [name, source] of Object.entries(PROGRAMS)) {
      const args = ["build", "-trimpath", "-ldflags", linker, "-o", join(part, name), source];
      const { code, stderr } = await run("go", args, { cwd: SOURCES, timeoutMs: BUILD_LIMIT_MS });
      if (code !== 0) throw TestkitError.failed(`go build ${source}`, stderr);
    }
    await rename(part, folder);
  } finally {
    await rm(part, { recursive: true, force: true });
  }
  return folder;
}

/** Version of Kubernetes in go.mod. A program that is built from the module does not know its own. */
async function pinnedVersion(): Promise<string> {
  const [, version] =
    /^\s*k8s\.io\/kubernetes v(\S+)/m.exec(await readFile(join(SOURCES, "go.mod"), "utf8")) ?? [];
  if (version === undefined) throw new Error(`cannot find the version of Kubernetes in ${SOURCES}/go.mod`);
  return version;
}
