import type { Machine } from "../machine/machine.ts";

/** Folder of the machine with the packages. */
export const PACKAGES = "/packages";
const APT_LIMIT_MS = 300_000;

/** apt and dpkg of a machine, which have nobody to ask. */
export class Debian {
  readonly #machine: Machine;

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  /** Reads the lists of the repository of the machine. */
  async update(): Promise<void> {
    await this.apt("update");
  }

  /** @returns everything that it printed @throws if it fails */
  async apt(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.#machine.exec(["apt-get", "-q", "-y", ...args], {
      timeoutMs: APT_LIMIT_MS,
    });
    if (code !== 0) throw new Error(`apt-get ${args.join(" ")} ended with ${code}: ${stdout}${stderr}`);
    return stdout + stderr;
  }

  /** Installs a package file, or replaces the installed version by it. */
  async install(file: string, ...options: readonly string[]): Promise<string> {
    return this.apt("install", ...options, `${PACKAGES}/${file}`);
  }

  /** State of a package, such as `ii` for installed and `rc` for removed with its configuration. Empty: unknown. */
  async state(name: string): Promise<string> {
    const { stdout } = await this.#machine.exec(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}", name]);
    return stdout.trim();
  }
}
