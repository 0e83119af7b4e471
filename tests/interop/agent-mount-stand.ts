import { readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { openEmbeddedStore, parseFields, userRoot, type SecretStore } from "@devplat/secret-store";
import { run, tempFolder, until, type Finished } from "@devplat/testkit";
import { Home, daemon, type RunningAgent } from "./agent-stand.ts";

/** A daemon with a mount at `~/.daemon`, over the embedded store. */
export interface MountStand {
  readonly place: Home;
  readonly mountpoint: string;
  agent: RunningAgent;
  /** Starts the daemon again. */
  start(): Promise<void>;
  /** Writes a secret into the store, past the daemon. `fields` is a JSON object. */
  store(path: string, fields: string): Promise<void>;
  /** Removes a secret from the store. */
  forget(path: string): Promise<void>;
  /** Path on the mount. */
  at(...names: string[]): string;
  /** Ends the daemon, and removes everything. */
  remove(): Promise<void>;
}

/** @param fuse further keys of the section */
export async function mountStand(name: string, fuse = "", more = ""): Promise<MountStand> {
  const folder = await tempFolder(name);
  const place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
  await place.configure(`store: { driver: embedded }
api: { enabled: true }
fuse: { enabled: true${fuse === "" ? "" : `, ${fuse}`} }
${more}`);
  const mountpoint = join(folder.path, ".daemon");
  const start = async (): Promise<RunningAgent> =>
    await daemon(place, async () => await isMounted(mountpoint));
  await place.ok("secrets", "put", "demo/registry", "user=ada", "password=first");
  const open = async (): Promise<SecretStore & AsyncDisposable> => {
    const root = userRoot({ mount: "kv", prefix: "users/", username: userInfo().username });
    const store = await openEmbeddedStore({ folder: join(folder.path, ".local/share/daemon"), root });
    return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
  };
  const stand: MountStand = {
    place,
    mountpoint,
    agent: await start(),
    start: async () => {
      stand.agent = await start();
    },
    store: async (path, fields) => {
      await using store = await open();
      await store.write(path, parseFields(fields));
    },
    forget: async (path) => {
      await using store = await open();
      await store.delete(path);
    },
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
