import { readFile, stat } from "node:fs/promises";
import type { Logger } from "@devplat/base";
import { decodeKnownHosts, type KnownHost } from "@devplat/ssh-protocol";
import { fileSignature } from "../../../agent-files/file-signature.ts";

/** A longer known_hosts file is not read, in bytes. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;

interface ReadFile {
  readonly signature: string | undefined;
  readonly hosts: readonly KnownHost[];
}

/** The lines of known_hosts files. A file is read again when it has changed. */
export class KnownHostsFiles {
  readonly #paths: readonly string[];
  readonly #logger: Logger;
  readonly #read = new Map<string, ReadFile>();

  constructor(paths: readonly string[], logger: Logger) {
    this.#paths = paths;
    this.#logger = logger;
  }

  /** The lines of all files. A file that cannot be read has none. */
  async lines(): Promise<readonly KnownHost[]> {
    return (await Promise.all(this.#paths.map((path) => this.#linesOf(path)))).flat();
  }

  async #linesOf(path: string): Promise<readonly KnownHost[]> {
    const signature = await fileSignature(path);
    const earlier = this.#read.get(path);
    if (earlier !== undefined && earlier.signature === signature) return earlier.hosts;
    const hosts = signature === undefined ? [] : await this.#readLines(path);
    this.#read.set(path, { signature, hosts });
    return hosts;
  }

  async #readLines(path: string): Promise<readonly KnownHost[]> {
    try {
      if ((await stat(path)).size > MAX_FILE_BYTES) throw new Error("too long");
      return decodeKnownHosts(await readFile(path, "utf8")).hosts;
    } catch (error) {
      this.#logger.warn({ err: error, path }, "known_hosts file cannot be read: its hosts have no names");
      return [];
    }
  }
}
