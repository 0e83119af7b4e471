import { noteLine, printLine } from "@devplat/base/terminal";
import { messageOf } from "@devplat/base";
import { stat } from "node:fs/promises";
import { BRAND } from "../../brand.ts";
import type { LoadedConfig } from "../../config/load.ts";
import {
  expandHome,
  isMountedRule,
  mayReadOthers,
  secretPaths,
  targetText,
  type Rule,
} from "../../config/sections/rule.ts";
import type { Host } from "../../host.ts";
import { PausedRules } from "../../sync/paused-rules.ts";
import { signatureOf } from "../../agent-files/file-signature.ts";
import { DaemonRequests } from "../common/daemon-request.ts";
import { freshCycle, type DaemonCycle } from "../common/running-daemon.ts";

/** Limit for waiting until the daemon has written a changed secret, in milliseconds. */
const WAIT_MS = 30_000;
/** The request only starts the cycle. In milliseconds. */
const TELL_TIMEOUT_MS = 5000;

interface TargetFile {
  readonly rule: string;
  readonly path: string;
  /** Command that makes the file where no daemon runs. */
  readonly maker: string;
  readonly before: string;
}

/** The files into which rules write one secret, as they were before it was changed. */
export class FilesOfSecret {
  readonly #host: Host;
  readonly #loaded: LoadedConfig;
  readonly #secretPath: string;
  readonly #files: readonly TargetFile[];

  private constructor(host: Host, loaded: LoadedConfig, secretPath: string, files: readonly TargetFile[]) {
    this.#secretPath = secretPath;
    this.#host = host;
    this.#loaded = loaded;
    this.#files = files;
  }

  /** Looks at the files, before the secret at `secretPath` is changed. */
  static async look(host: Host, loaded: LoadedConfig, secretPath: string): Promise<FilesOfSecret> {
    const paused = await new PausedRules(host.places.state).read();
    const readers = loaded.config.rules.filter(
      (rule) => rule.enabled && !rule.paused && !paused.has(rule.name) && reads(rule, secretPath),
    );
    const files = readers.map(async (rule) => {
      const path = expandHome(targetText(rule, loaded.config.fuse.mountpoint), host.places.home);
      const maker = isMountedRule(rule)
        ? `'${BRAND.command} run' shows it`
        : `'${BRAND.command} sync' writes it`;
      return { rule: rule.name, path, maker, before: await stampOf(path) };
    });
    return new FilesOfSecret(host, loaded, secretPath, await Promise.all(files));
  }

  /**
   * Waits for the running daemon to have synced what was changed since {@link look}, and prints what became of each file.
   * The secret is stored already: a failure here is printed, and the command does not fail.
   */
  async untilSynced(): Promise<void> {
    if (this.#files.length === 0) return await this.#tellDaemon();
    const { cycle, reason } = await this.#cycle();
    for (const { rule, path, maker, before } of this.#files) {
      const isChanged = (await stampOf(path)) !== before;
      const error = cycle?.errors[rule]?.error;
      if (isChanged) printLine(`${path}: changed (rule ${rule})`);
      else if (cycle === undefined)
        noteLine(`${path}: not written yet (rule ${rule}): ${reason ?? `no daemon answers; ${maker}`}`);
      else if (typeof error === "string") noteLine(`${path}: not written (rule ${rule}): ${error}`);
      else printLine(`${path}: unchanged (rule ${rule})`);
    }
  }

  /** Without a file to wait for: has the daemon show the secret on its mount and in its volumes before the next poll. Never rejects. */
  async #tellDaemon(): Promise<void> {
    const { store, fuse, docker } = this.#loaded.config;
    // The daemon notices changes of an embedded store.
    if (store.driver === "embedded" || (!fuse.enabled && !docker.enabled)) return;
    const requests = new DaemonRequests(this.#host, this.#loaded.config);
    const query = new URLSearchParams({ secret: this.#secretPath });
    await requests
      .change(`/api/v1/sync?${query.toString()}`, { timeoutMs: TELL_TIMEOUT_MS })
      .catch(() => undefined);
  }

  async #cycle(): Promise<{ readonly cycle?: DaemonCycle; readonly reason?: string }> {
    try {
      const cycle = await freshCycle(this.#host, this.#loaded, WAIT_MS, this.#secretPath);
      if (cycle !== undefined) return { cycle };
      return {};
    } catch (error) {
      return { reason: messageOf(error) };
    }
  }
}

function reads(rule: Rule, secretPath: string): boolean {
  if (secretPaths(rule).includes(secretPath)) return true;
  return mayReadOthers(rule) && rule.target.template?.includes(`"${secretPath}"`) === true;
}

/** Changes whenever the file is written; empty: there is none, or it cannot be looked at. */
async function stampOf(path: string): Promise<string> {
  const stats = await stat(path, { bigint: true }).catch(() => undefined);
  return stats === undefined ? "" : signatureOf(stats);
}
