import { readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { openEmbeddedStore, parseFields, printJson, userRoot, type SecretStore } from "@devplat/secret-store";
import { run, tempFolder, until, type Finished, type Vault } from "@devplat/testkit";
import { Home, daemon, type RunningAgent } from "./agent-stand.ts";

/** A store of a test, used past the daemon. */
export interface StandStore {
  /** The `store` section. */
  readonly section: string;
  /** Makes a home ready for the sign-in. */
  prepare(place: Home): Promise<void>;
  write(place: Home, path: string, fields: string): Promise<void>;
  delete(place: Home, path: string): Promise<void>;
  /** The fields of a secret; undefined without it. */
  fieldsOf(place: Home, path: string): Promise<unknown>;
}

/** A daemon with a mount at `~/.daemon`. */
export interface MountStand {
  readonly place: Home;
  readonly mountpoint: string;
  agent: RunningAgent;
  /** Starts the daemon again. */
  start(): Promise<void>;
  /** Writes a secret into the store, past the daemon. `fields` is a JSON object. */
  store(path: string, fields: string): Promise<void>;
  /** The fields of a secret as the store has them, read past the daemon; undefined without the secret. */
  stored(path: string): Promise<unknown>;
  /** Removes a secret from the store. */
  forget(path: string): Promise<void>;
  /** Path on the mount. */
  at(...names: string[]): string;
  /** Ends the daemon, and removes everything. */
  remove(): Promise<void>;
}

/**
 * @param fuse further keys of the section
 * @param store default: the embedded one
 */
export async function mountStand(
  name: string,
  fuse = "",
  more = "",
  store: StandStore = EMBEDDED,
): Promise<MountStand> {
  const folder = await tempFolder(name);
  const place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
  await place.configure(`store: ${store.section}
api: { enabled: true }
fuse: { enabled: true${fuse === "" ? "" : `, ${fuse}`} }
${more}`);
  await store.prepare(place);
  const mountpoint = join(folder.path, ".daemon");
  const start = async (): Promise<RunningAgent> =>
    await daemon(place, async () => await isMounted(mountpoint));
  await place.ok("secrets", "put", "demo/registry", "user=ada", "password=first");
  const stand: MountStand = {
    place,
    mountpoint,
    agent: await start(),
    start: async () => {
      stand.agent = await start();
    },
    store: (path, fields) => store.write(place, path, fields),
    stored: (path) => store.fieldsOf(place, path),
    forget: (path) => store.delete(place, path),
    at: (...names) => join(mountpoint, ...names),
    remove: async () => {
      await stand.agent.stop();
      // A test that failed can leave a mount, which must not hang what follows.
      if (await isMounted(mountpoint)) await run("umount", ["--lazy", mountpoint], {});
      await folder.remove();
    },
  };
  return stand;
}

const EMBEDDED: StandStore = {
  section: "{ driver: embedded }",
  prepare: async () => {},
  write: async (place, path, fields) => {
    await using store = await openEmbedded(place);
    await store.write(path, parseFields(fields));
  },
  delete: async (place, path) => {
    await using store = await openEmbedded(place);
    await store.delete(path);
  },
  fieldsOf: async (place, path) => {
    await using store = await openEmbedded(place);
    const found = await store.read(path).catch(() => undefined);
    return found === undefined ? undefined : JSON.parse(printJson(found.fields));
  },
};

async function openEmbedded(place: Home): Promise<SecretStore & AsyncDisposable> {
  const root = userRoot({ mount: "kv", prefix: "users/", username: userInfo().username });
  const store = await openEmbeddedStore({ folder: join(place.path, ".local/share/daemon"), root });
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

/** Vault as the user `ada`. It is written and read by curl. */
export class VaultStandStore implements StandStore {
  readonly section: string;
  readonly #vault: Vault;

  constructor(vault: Vault) {
    this.#vault = vault;
    this.section = `{ driver: vault, address: "${vault.address}", auth_method: token, username: ada }`;
  }

  async prepare(place: Home): Promise<void> {
    await place.write(".daemon-token", this.#vault.rootToken);
  }

  async write(_place: Home, path: string, fields: string): Promise<void> {
    await this.#curl("data", path, "--fail", "--data", `{"data":${fields}}`);
  }

  async delete(_place: Home, path: string): Promise<void> {
    await this.#curl("metadata", path, "--fail", "--request", "DELETE");
  }

  /** Fields and version, or undefined if there is no such secret. */
  async read(path: string): Promise<{ fields: unknown; version: number } | undefined> {
    const text = await this.#curl("data", path);
    const { data } = JSON.parse(text) as { data?: { data: unknown; metadata: { version: number } } };
    if (data === undefined || data.data === null) return undefined;
    return { fields: data.data, version: data.metadata.version };
  }

  async fieldsOf(_place: Home, path: string): Promise<unknown> {
    return (await this.read(path))?.fields;
  }

  /** Names of secrets and folders in a folder. */
  async list(folder: string): Promise<string[]> {
    const text = await this.#curl("metadata", folder, "--request", "LIST");
    return (JSON.parse(text) as { data?: { keys: string[] } }).data?.keys ?? [];
  }

  async #curl(kind: string, path: string, ...more: string[]): Promise<string> {
    const { address, rootToken } = this.#vault;
    const url = `${address}/v1/kv/${kind}/users/ada/${path}`;
    const token = `X-Vault-Token: ${rootToken}`;
    const { code, stdout, stderr } = await run("curl", ["-sS", "--header", token, ...more, url], {});
    if (code !== 0) throw new Error(`curl ${url}: ${stderr}`);
    return stdout;
  }
}

/** Whether the kernel has a mount there. */
export async function isMounted(mountpoint: string): Promise<boolean> {
  return (await readFile("/proc/self/mountinfo", "utf8")).includes(` ${mountpoint} `);
}

/** Python as the independent reader. It prints what the script prints. */
export async function python(script: string, ...args: string[]): Promise<string> {
  const { stdout, stderr, code } = await run("python3", ["-c", script, ...args], {});
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

/** Waits until a file has this text. */
export async function untilText(path: string, text: string): Promise<void> {
  let seen = "";
  await until(
    async () => {
      seen = await readFile(path, "utf8").catch((error: unknown) => String(error));
      return seen === text;
    },
    () => `${path} is ${seen}`,
  );
}

/** Runs a program with a time limit, so that a hung mount fails the test instead of hanging it. */
export async function quick(...command: string[]): Promise<Finished> {
  return await run("timeout", ["--signal=KILL", "20", ...command], {});
}
