import { writeAtomically } from "@devplat/base";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { ensureFolder } from "../config/places.ts";

/** The running daemon's process id, for `agent reload`. Believed only while the writer lock is held. */
export class DaemonPid {
  readonly #folder: string;

  /** @param runtime the runtime folder */
  constructor(runtime: string) {
    this.#folder = runtime;
  }

  async publish(): Promise<void> {
    await ensureFolder(this.#folder);
    await writeAtomically(this.#path(), `${process.pid}\n`);
  }

  async withdraw(): Promise<void> {
    if ((await this.read()) === process.pid) await rm(this.#path(), { force: true });
  }

  async read(): Promise<number | undefined> {
    const text = await readFile(this.#path(), "utf8").catch(() => "");
    return /^[1-9]\d{0,9}\n$/.test(text) ? Number(text) : undefined;
  }

  #path(): string {
    return join(this.#folder, "daemon.pid");
  }
}
