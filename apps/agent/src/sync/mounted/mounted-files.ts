import { realpathSync } from "node:fs";
import type { Logger } from "@devplat/base";
import { Semaphore } from "@devplat/base/semaphore";
import type { EditMap } from "@devplat/document-edit";
import { SecretStoreError, type SecretStore } from "@devplat/secret-store";
import { fileSignature } from "../../agent-files/file-signature.ts";
import { ChangeListeners } from "../../change-listeners.ts";
import { secretsWithNamesOf } from "../../config/sections/mounted-file.ts";
import {
  expandHome,
  isMountedRule,
  mayReadOthers,
  ownsWholeFile,
  secretPaths,
  type MountedRule,
  type Rule,
} from "../../config/sections/rule.ts";
import { AgentError, publicMessage } from "../../errors.ts";
import { CycleSecrets } from "../content/cycle-secrets.ts";
import type { Renderer } from "../content/rule-content.ts";
import { formatOf } from "../content/target-format.ts";
import { mergeFile } from "../edit/large-files.ts";
import { readBaseFile, type BaseFile } from "./base-file.ts";
import type { MountPlace } from "./mount-place.ts";

/** Files that are made concurrently. */
const PARALLEL = 8;
/** Largest file on the mount, in bytes. */
const MAX_FILE_BYTES = 1024 * 1024;

/** Content of a file on the mount. */
export interface MountedFile {
  readonly content: string;
  /** Time of its newest source, in milliseconds since the epoch. */
  readonly changedAt: number;
}

export interface MountedFilesParts {
  readonly store: SecretStore;
  readonly renderer: Renderer;
  /** Rules that the user has paused by hand. */
  readonly paused: { read(): Promise<ReadonlySet<string>> };
  readonly home: string;
  readonly logger: Logger;
}

interface KnownBase {
  readonly path: string;
  readonly signature: string;
}

/**
 * The files of rules that are on the filesystem mount and on no disk. A file is made when it is read. Nothing here keeps its
 * content. Cycles only check that it can be made, and note that it may be another one.
 */
export class MountedFiles {
  readonly #parts: MountedFilesParts;
  readonly #listeners = new ChangeListeners();
  /** Base files as the last cycle has seen them, by rule. */
  readonly #bases = new Map<string, KnownBase>();
  /** Rules whose last read has failed. The log names each failure once. */
  readonly #failed = new Set<string>();
  readonly #turns = new Semaphore(PARALLEL);
  #rules: readonly MountedRule[] = [];
  #place: MountPlace = { mountpoint: undefined, remedy: "", layout: "json" };

  constructor(parts: MountedFilesParts) {
    this.#parts = parts;
  }

  /** Takes up a changed configuration. */
  configure(rules: readonly Rule[], place: MountPlace): void {
    this.#rules = rules.filter(isMountedRule).filter(({ enabled }) => enabled);
    this.#place = place;
  }

  /** Calls back when a file may have other content, until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** A rule has another state or other content. */
  noteEvent(name: string): void {
    if (this.#rules.some((rule) => rule.name === name)) this.#listeners.changed();
  }

  /** The files that the mount shows, with the real paths of the programs that may read them. */
  shown(): { readonly path: string; readonly allow: readonly string[] | undefined }[] {
    return this.#rules
      .filter(({ paused }) => !paused)
      .map(({ target }) => ({
        path: target.mount,
        allow: target.allow?.map((path) => this.#realPath(path)),
      }));
  }

  /** Whether a file may be made from a secret. `""`: any secret. */
  dependOn(secret: string): boolean {
    return this.#rules.some(
      (rule) => secret === "" || secretPaths(rule).includes(secret) || mayReadOthers(rule),
    );
  }

  /**
   * Makes a file, from the store as it is now.
   * @returns undefined while it has no content: a secret is missing, or the rule is paused
   * @throws SecretStoreError; AgentError, whose reason is in the log; the reason of the signal
   */
  async render(path: string, signal: AbortSignal): Promise<MountedFile | undefined> {
    const { paused, logger } = this.#parts;
    const rule = this.#rules.find(({ target }) => target.mount === path);
    if (rule === undefined || rule.paused || (await paused.read()).has(rule.name)) return undefined;
    const release = await this.#turns.acquire(signal);
    try {
      const file = await this.#make(rule, signal);
      this.#failed.delete(rule.name);
      return file;
    } catch (error) {
      if (error instanceof SecretStoreError || signal.aborted) throw error;
      const message = publicMessage(error);
      if (!this.#failed.has(rule.name))
        logger.warn({ rule: rule.name, path, error: message }, "a file on the mount cannot be made");
      this.#failed.add(rule.name);
      throw new AgentError("mount_failed", message);
    } finally {
      release();
    }
  }

  async #make(rule: MountedRule, signal: AbortSignal): Promise<MountedFile | undefined> {
    const { store, renderer } = this.#parts;
    const rendered = await renderer.render(rule, new CycleSecrets(store, signal));
    if (rendered.kind === "missing") return undefined;
    const base = await this.base(rule);
    const bytes = await this.bytes(rule, rendered.content, base, signal);
    return { content: bytes.toString(), changedAt: Math.max(rendered.changedAt, base?.modifiedMs ?? 0) };
  }

  /** The whole content of a rule's file. @throws DocumentEditError; AgentError; the reason of the signal */
  async bytes(
    rule: MountedRule,
    content: EditMap,
    base: BaseFile | undefined,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const { merge, delete_nulls: deleteNulls, lists } = rule.target;
    const piece = {
      rule: rule.name,
      content,
      options: { merge, deleteNulls, lists },
      managedBefore: [],
      foundBefore: [],
      clean: false,
      overwrite: true,
    };
    const context = {
      format: formatOf(rule.target),
      wholeFile: ownsWholeFile(rule),
      others: new Map(),
      isOurs: () => false,
    };
    const merged = await mergeFile(base?.bytes, [piece], context, signal);
    const outcome = merged.outcomes.get(rule.name);
    if (outcome?.kind === "failed") throw outcome.error;
    if (!(merged.content instanceof Buffer)) throw new Error("a file on the mount without content");
    if (merged.content.length > MAX_FILE_BYTES)
      throw new AgentError("mount_failed", "the file would be larger than 1 MiB");
    return merged.content;
  }

  /** The base file of a rule; undefined for a rule without one. @throws AgentError `base_refused` */
  async base({ target }: MountedRule): Promise<BaseFile | undefined> {
    const { mountpoint } = this.#place;
    if (target.base === undefined || mountpoint === undefined) return undefined;
    return await readBaseFile(target.base, this.#parts.home, mountpoint);
  }

  /** @throws AgentError `mount_off`, `mount_name_taken`; SecretStoreError if the store cannot be used at all */
  async check(rule: MountedRule, secrets: CycleSecrets): Promise<void> {
    const { mountpoint, remedy, layout } = this.#place;
    if (mountpoint === undefined)
      throw new AgentError("mount_off", `there is no mount for this file: ${remedy}`);
    const { mount } = rule.target;
    const taken = (text: string): AgentError =>
      new AgentError(
        "mount_name_taken",
        `${text} has the name of the file ${mount} on the mount, and is shown there`,
        {
          hint: "Give the rule another target.mount, or remove what is stored there.",
        },
      );
    for (const path of secretsWithNamesOf(mount, layout))
      if (await secrets.isStored(path)) throw taken(`the secret ${path}`);
    if (await secrets.hasFolder(mount)) throw taken(`the folder ${mount}/ of the store`);
  }

  /** Whether the base file of a rule is as the last cycle has seen it. The first look counts as equal. */
  async hasSameBase(rule: MountedRule): Promise<boolean> {
    const base = await this.base(rule);
    const known = this.#bases.get(rule.name);
    this.noteBase(rule, base);
    return known === undefined || (known.path === rule.target.base && known.signature === base?.signature);
  }

  noteBase({ name, target }: MountedRule, base: BaseFile | undefined): void {
    if (base === undefined || target.base === undefined) this.#bases.delete(name);
    else this.#bases.set(name, { path: target.base, signature: base.signature });
  }

  /** The base files that a cycle has seen. */
  baseFiles(): string[] {
    return [...this.#bases.values()].map(({ path }) => expandHome(path, this.#parts.home));
  }

  /** Whether another program has changed a base file since the last cycle. */
  async isBaseTouched(file: string): Promise<boolean> {
    const known = [...this.#bases.values()].find(({ path }) => expandHome(path, this.#parts.home) === file);
    return known !== undefined && known.signature !== (await fileSignature(file));
  }

  /** The path with its links followed, as the kernel names a running program. */
  #realPath(path: string): string {
    const full = expandHome(path, this.#parts.home);
    try {
      return realpathSync(full);
    } catch {
      return full;
    }
  }
}
