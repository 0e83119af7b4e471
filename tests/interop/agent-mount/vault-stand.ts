import { join } from "node:path";
import {
  run,
  startVaultProxy,
  tempFolder,
  until,
  type TempFolder,
  type Vault,
  type VaultProxy,
} from "@devplat/testkit";
import { Home, daemon, type RunningAgent } from "../agent-stand.ts";
import { isMounted, python } from "../agent-mount-stand.ts";

/** Opens and reads a file, or lists a folder. Prints the name of the error, or nothing, and the seconds that it took. */
const TRY = `
import errno, os, sys, time
start, name = time.monotonic(), ""
try:
    if os.path.isdir(sys.argv[1]): os.listdir(sys.argv[1])
    else: open(sys.argv[1]).read()
except OSError as error:
    name = errno.errorcode[error.errno]
print(name, time.monotonic() - start)
`;

/** Result of a try to read something on the mount. */
export interface Tried {
  /** Name of the error, such as `EACCES`; empty after success. */
  readonly error: string;
  readonly seconds: number;
}

/** A daemon with a mount at `~/.daemon`, over a real Vault behind a proxy that fails when it is told to. */
export class VaultStand {
  readonly place: Home;
  readonly proxy: VaultProxy;
  readonly mountpoint: string;
  readonly #vault: Vault;
  readonly #user: string;
  readonly #folder: TempFolder;
  #agent: RunningAgent | undefined;

  private constructor(vault: Vault, user: string, proxy: VaultProxy, folder: TempFolder) {
    this.#vault = vault;
    this.#user = user;
    this.#folder = folder;
    this.proxy = proxy;
    this.place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
    this.mountpoint = join(folder.path, ".daemon");
  }

  /**
   * @param user has these policies, and no secrets yet
   * @param fuse further keys of the section
   * @param more other sections
   */
  static async start(
    vault: Vault,
    user: string,
    policies: readonly string[],
    { fuse = "cache_ttl: 1s", more = "" }: { readonly fuse?: string; readonly more?: string } = {},
  ): Promise<VaultStand> {
    const folder = await tempFolder("agent-mount-vault");
    const stand = new VaultStand(vault, user, await startVaultProxy(vault.address), folder);
    await stand.place.configure(`store: { address: "${stand.proxy.url}", username: ${user} }
fuse: { enabled: true, ${fuse} }
${more}`);
    await stand.signIn(policies);
    try {
      stand.#agent = await daemon(stand.place, async () => await isMounted(stand.mountpoint));
    } catch (error) {
      await stand.stop();
      throw error;
    }
    return stand;
  }

  get agent(): RunningAgent {
    if (this.#agent === undefined) throw new Error("the daemon is not started");
    return this.#agent;
  }

  at(...names: string[]): string {
    return join(this.mountpoint, ...names);
  }

  /** Writes a secret into the store. */
  async put(path: string, fields: Readonly<Record<string, string>>): Promise<void> {
    await this.#vault.put(`users/${this.#user}/${path}`, fields);
  }

  /** A new token in the token file, as after a login. */
  async signIn(policies: readonly string[]): Promise<string> {
    const token = await this.#vault.createUserToken(this.#user, policies);
    await this.place.write(".daemon-token", token);
    return token;
  }

  async try(...names: string[]): Promise<Tried> {
    const [error = "", seconds = ""] = (await python(TRY, this.at(...names))).split(" ");
    return { error, seconds: Number(seconds) };
  }

  /** Waits until reading has this result. */
  async untilError(error: string, ...names: string[]): Promise<void> {
    let seen: Tried | undefined;
    await until(
      async () => (seen = await this.try(...names)).error === error,
      () => `${names.join("/")} gives ${JSON.stringify(seen)}\n${this.agent.log()}`,
    );
  }

  async stop(): Promise<void> {
    await this.#agent?.stop();
    if (await isMounted(this.mountpoint)) await run("umount", ["--lazy", this.mountpoint], {});
    this.proxy.stop();
    await this.#folder.remove();
  }
}
