import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { join } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { TestkitError } from "./errors.ts";
import { freePort } from "./free-port.ts";
import { vaultPrograms } from "./peer-programs.ts";
import { answers, startPeer, type Peer, type PeerCommand } from "./peer.ts";
import { tempFolder } from "./temp-folder.ts";

export interface VaultOptions {
  /**
   * - `memory` (default): Vault's development mode; up in a tenth of a second, restart() loses all data.
   * - `disk`: an ordinary server on a folder (Raft storage, one node: the only kind on disk in the build);
   *   restart() keeps the data and leaves it sealed until unseal().
   */
  readonly storage?: "memory" | "disk";
  /** Whether the LDAP auth plugin is registered as `vault-ldap` (costs 0.2 s). Default false. `memory` only. */
  readonly ldapPlugin?: boolean;
  /** Whether it speaks https, with a certificate of an authority of its own. Default false. `memory` only. */
  readonly tls?: boolean;
}

export interface VaultAnswer {
  readonly status: number;
  /** The JSON response. Empty for 204 and for bodies that are not a JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** A real Vault on loopback with a KV v2 engine at `kv/`. */
export interface Vault {
  readonly address: string;
  /** The file of the authority that its certificate comes from (PEM); only with `tls`. */
  readonly caFile: string | undefined;
  readonly rootToken: string;
  readonly pid: number;
  /**
   * Calls the API as root. `path` is below `/v1/`. A 404 resolves (in KV v2 it may carry a body); any other status
   * of 400 and above rejects with the path and status.
   */
  request(method: string, path: string, body?: unknown): Promise<VaultAnswer>;
  /** Writes a secret at `kv/`; resolves with its new version. */
  put(path: string, fields: Readonly<Record<string, unknown>>): Promise<number>;
  /** Logs a user in at `userpass/` (creating it when new) and resolves with the token. Default policy: `default`. */
  createUserToken(username: string, policies?: readonly string[]): Promise<string>;
  seal(): Promise<void>;
  unseal(): Promise<void>;
  /** Ends the process; the address refuses connections until {@link resume}. */
  pause(): Promise<void>;
  /** Starts it again on the same address, after {@link pause}. */
  resume(): Promise<void>;
  /** pause and resume. Root token and address stay; what becomes of the data, see {@link VaultOptions}. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const DEV_ROOT_TOKEN = "root-of-the-tests";
/** Mounting KV v2 upgrades it in the background; requests until then get 400. */
const MOUNT_LIMIT_MS = 60_000;
/** A request that takes longer fails, so that a hang has a name. */
const REQUEST_LIMIT_MS = 60_000;

export async function startVault(options: VaultOptions = {}): Promise<Vault> {
  const programs = vaultPrograms();
  const folder = await tempFolder("vault");
  const onDisk = options.storage === "disk";
  let port = 0;
  let rootToken = DEV_ROOT_TOKEN;
  let unsealKey = "";

  const prepare = async (): Promise<PeerCommand> => {
    // The cluster port is the next one: both have to be free, which startPeer's second try takes care of.
    if (port === 0) port = await freePort();
    const args = onDisk
      ? ["server", `-config=${await writeConfiguration(folder.path, port)}`]
      : [
          "server",
          "-dev",
          `-dev-root-token-id=${DEV_ROOT_TOKEN}`,
          `-dev-listen-address=127.0.0.1:${port}`,
          "-dev-no-store-token",
          ...(options.tls === true ? ["-dev-tls", `-dev-tls-cert-dir=${folder.path}`] : []),
          ...(options.ldapPlugin === true ? [`-dev-plugin-dir=${programs.pluginFolder}`] : []),
        ];
    return {
      command: programs.vault,
      args,
      // Without HOME and VAULT_*: nothing of the user's takes part.
      options: { env: { PATH: process.env["PATH"], HOME: folder.path } },
      // 501: not initialised, 503: sealed. In development mode the key is printed last of all.
      isReady: async (output) =>
        onDisk
          ? answers(`${address()}/v1/sys/health`, (status) => [200, 501, 503].includes(status))
          : UNSEAL_KEY.test(output) && (await isUp()),
    };
  };
  const address = (): string => `${options.tls === true ? "https" : "http"}://127.0.0.1:${port}`;
  const caFile = options.tls === true ? join(folder.path, "vault-ca.pem") : undefined;
  const call = async (method: string, path: string, headers: Record<string, string>, body?: string) => {
    const ca = caFile === undefined ? undefined : await readFile(caFile);
    return exchange(`${address()}/v1/${path}`, { method, headers, ...(ca !== undefined && { ca }) }, body);
  };
  const isUp = (): Promise<boolean> =>
    call("GET", "sys/health", {}).then(
      ({ status }) => status === 200,
      () => false,
    );

  const request = async (method: string, path: string, body?: unknown): Promise<VaultAnswer> => {
    const response = await call(
      method,
      path,
      { "X-Vault-Token": rootToken, "X-Vault-Request": "true" },
      body === undefined ? undefined : JSON.stringify(body),
    );
    const { text } = response;
    if (response.status >= 400 && response.status !== 404) {
      throw new TestkitError(
        "command_failed",
        `Vault answered ${method} ${path} with ${response.status}: ${text}`,
      );
    }
    return { status: response.status, body: text === "" ? {} : record(JSON.parse(text)) };
  };
  const unseal = async (): Promise<void> => {
    await request("PUT", "sys/unseal", { key: unsealKey });
    await until(isUp, "unsealed");
  };
  const mount = async (): Promise<void> => {
    await request("POST", "sys/mounts/kv", { type: "kv", options: { version: "2" } });
    await until(async () => {
      return (await call("GET", "kv/config", { "X-Vault-Token": rootToken })).status === 200;
    }, "ready at kv/");
  };

  let peer: Peer;
  let begun = false;
  const begin = async (): Promise<void> => {
    peer = await startPeer("Vault", async () => {
      if (!begun) port = 0;
      return prepare();
    });
    if (!onDisk) {
      unsealKey = UNSEAL_KEY.exec(peer.output())?.[1] ?? "";
      await mount();
    } else if (!begun) {
      const { body } = await request("PUT", "sys/init", { secret_shares: 1, secret_threshold: 1 });
      rootToken = String(body["root_token"]);
      unsealKey = String((body["keys_base64"] as unknown[])[0]);
      await unseal();
      await mount();
    }
    begun = true;
  };
  const pause = async (): Promise<void> => void (await peer.stop());
  let userpass = false;
  const resume = async (): Promise<void> => {
    if (!onDisk) userpass = false;
    await begin();
  };

  try {
    await begin();
  } catch (error) {
    await folder.remove();
    throw error;
  }
  return {
    address: address(),
    caFile,
    get rootToken() {
      return rootToken;
    },
    get pid() {
      return peer.pid;
    },
    request,
    async put(path, fields) {
      const { body } = await request("POST", `kv/data/${path}`, { data: fields });
      return Number(record(body["data"])["version"]);
    },
    async createUserToken(username, policies = ["default"]) {
      if (!userpass) await request("POST", "sys/auth/userpass", { type: "userpass" });
      userpass = true;
      const password = `password-of-${username}`;
      await request("POST", `auth/userpass/users/${username}`, { password, token_policies: policies });
      const { body } = await request("POST", `auth/userpass/login/${username}`, { password });
      return String(record(body["auth"])["client_token"]);
    },
    async seal() {
      await request("PUT", "sys/seal");
    },
    unseal,
    pause,
    resume,
    async restart() {
      await pause();
      await resume();
    },
    async stop() {
      await pause();
      await folder.remove();
    },
  };
}

/** One request, with node:http as fetch takes no certificate authority of one's own. */
async function exchange(
  url: string,
  options: RequestOptions,
  body: string | undefined,
): Promise<{ status: number; text: string }> {
  const signal = AbortSignal.timeout(REQUEST_LIMIT_MS);
  const outgoing = (url.startsWith("https:") ? httpsRequest : httpRequest)(url, { ...options, signal });
  outgoing.end(body);
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: incoming.statusCode ?? 0, text: await readAll(incoming) };
}

const UNSEAL_KEY = /^Unseal Key: (\S+)$/m;

async function writeConfiguration(folder: string, port: number): Promise<string> {
  const data = join(folder, "data");
  await mkdir(data, { recursive: true });
  const path = join(folder, "vault.json");
  const configuration = {
    storage: { raft: { path: data, node_id: "one", performance_multiplier: 1 } },
    listener: { tcp: { address: `127.0.0.1:${port}`, tls_disable: true } },
    api_addr: `http://127.0.0.1:${port}`,
    cluster_addr: `https://127.0.0.1:${port + 1}`,
    disable_mlock: true,
  };
  await writeFile(path, JSON.stringify(configuration));
  return path;
}

async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + MOUNT_LIMIT_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw TestkitError.failed("Vault", `it was never ${what}`);
    await sleep(5);
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
