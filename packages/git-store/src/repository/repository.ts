import { mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { isOid, type ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError, hasCode, isMissingFile } from "../errors.ts";
import { indexPack, type IndexedPack, type IndexPackOptions } from "../index-pack/index-pack.ts";
import { ObjectDatabase, type ObjectDatabaseOptions } from "../object-database.ts";
import type { Oid } from "../oid.ts";
import { parseTag } from "../tag.ts";
import { formatConfig, parseConfig, type GitConfig } from "./config-file.ts";
import { removeLeftovers } from "./leftovers.ts";
import { acquireLock, type Lock, type LockOptions } from "./lock-file.ts";
import { formatPackedRefs, parsePackedRefs, type Ref } from "./packed-refs.ts";
import { checkRefName, isRefName } from "./ref-name.ts";
import { READ_FLAGS } from "../read-file.ts";
import { replaceFile } from "./replace-file.ts";

/** A pipe in place of a file is read as an empty file. */
const READ_OPTIONS = { encoding: "utf8", flag: READ_FLAGS } as const;

/** Target of HEAD: a ref, which need not exist, or a commit. */
export type Head = { readonly ref: string } | { readonly oid: Oid };

/** Options of {@link Repository.init}. */
export interface InitOptions extends Omit<ObjectDatabaseOptions, "format"> {
  /** Default `sha1`. */
  readonly format?: ObjectFormat;
  /** Default `refs/heads/main`. */
  readonly head?: string;
  /** More values for its `config`, by key (`section.name`). */
  readonly config?: Readonly<Record<string, string>>;
}

/** Extensions that are handled here, or do not affect a reader of objects and packed refs. */
const KNOWN_EXTENSIONS = new Set(["extensions.objectformat", "extensions.noop", "extensions.partialclone"]);

/**
 * A bare repository on disk that stock git can read. Every file is written to a temporary file, flushed and then
 * renamed, so a crash at any moment leaves the old state or the new one.
 */
export class Repository {
  /** Path of the repository. */
  readonly path: string;
  readonly format: ObjectFormat;
  readonly objects: ObjectDatabase;
  #config: GitConfig;
  readonly #closers: (() => void)[] = [];

  private constructor(path: string, format: ObjectFormat, config: GitConfig, objects: ObjectDatabase) {
    this.path = path;
    this.format = format;
    this.objects = objects;
    this.#config = config;
  }

  /**
   * Creates an empty repository, or opens an existing one. It completes one that a crash left unfinished.
   *
   * @throws {GitStoreError} as {@link open}; `bad_ref_name`
   */
  static async init(path: string, options: InitOptions = {}): Promise<Repository> {
    if (!(await exists(join(path, "HEAD")))) {
      const format = options.format ?? "sha1";
      const head = options.head ?? "refs/heads/main";
      checkRefName(head);
      for (const folder of ["objects/pack", "objects/info", "refs/heads", "refs/tags"]) {
        await mkdir(join(path, folder), { recursive: true });
      }
      const values = new Map([
        ["core.repositoryformatversion", format === "sha1" ? "0" : "1"],
        ["core.filemode", "true"],
        ["core.bare", "true"],
      ]);
      if (format !== "sha1") values.set("extensions.objectformat", format);
      for (const [key, value] of Object.entries(options.config ?? {})) values.set(key, value);
      await replaceFile(join(path, "config"), formatConfig(values));
      // HEAD comes last, because it makes the folder a repository.
      await replaceFile(join(path, "HEAD"), `ref: ${head}\n`);
    }
    return Repository.open(path, options);
  }

  /**
   * @throws {GitStoreError} `not_a_repository`, `unsupported_repository`, `corrupt_repository`, and what
   *   `ObjectDatabase.open` throws
   */
  static async open(path: string, options: Omit<ObjectDatabaseOptions, "format"> = {}): Promise<Repository> {
    const text = await readOptional(join(path, "config"));
    if (text === undefined || !(await exists(join(path, "HEAD"))) || !(await exists(join(path, "objects")))) {
      throw new GitStoreError("not_a_repository", `open ${path}: it is not a bare repository`, { path });
    }
    const config = parseConfig(text);
    const format = formatOf(config, path);
    const objects = ObjectDatabase.open(join(path, "objects"), { ...options, format });
    return new Repository(path, format, config, objects);
  }

  /**
   * Opens the repository once more, with the objects of a further `objects` folder. The tables of packs are shared.
   *
   * @throws {GitStoreError} as `ObjectDatabase.open`
   */
  withFolder(folder: string): Repository {
    const objects = ObjectDatabase.attach(this.objects.shared(), { extraFolders: [folder] });
    return new Repository(this.path, this.format, this.#config, objects);
  }

  /** Whether it has no working tree, by `core.bare`. */
  get isBare(): boolean {
    return this.config("core.bare")?.toLowerCase() !== "false";
  }

  /** Returns a value of the repository's `config`, as it was when opened. */
  config(key: string): string | undefined {
    return this.#config.get(key);
  }

  /** @throws {GitStoreError} `corrupt_repository` */
  async head(): Promise<Head> {
    const text = (await readFile(join(this.path, "HEAD"), READ_OPTIONS)).trimEnd();
    const ref = /^ref:\s*(.*)$/su.exec(text)?.[1];
    if (ref !== undefined && isRefName(ref)) return { ref };
    if (isOid(text, this.format)) return { oid: text };
    throw new GitStoreError("corrupt_repository", `read ${this.path}/HEAD: neither a ref nor an id`);
  }

  /**
   * Reads all refs by name: `packed-refs`, and loose refs of stock git, which take precedence. Loose symbolic refs are
   * skipped.
   *
   * @throws {GitStoreError} `corrupt_repository`
   */
  async refs(): Promise<Map<string, Ref>> {
    // Loose refs first: git packs a ref before it removes the loose one, so this order misses none.
    const loose: Ref[] = [];
    await this.#readLooseRefs("refs", loose);
    const text = await readOptional(join(this.path, "packed-refs"));
    const refs = new Map<string, Ref>();
    for (const ref of parsePackedRefs(text ?? "", this.format)) refs.set(ref.name, ref);
    for (const ref of loose) refs.set(ref.name, ref);
    return refs;
  }

  async #readLooseRefs(folder: string, found: Ref[]): Promise<void> {
    const entries = await readdir(join(this.path, folder), { withFileTypes: true }).catch(
      (error: unknown) => {
        // Another process has removed the folder with its last ref. Each repository has `refs` itself.
        if (folder !== "refs" && isMissingFile(error)) return [];
        throw error;
      },
    );
    for (const entry of entries) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        await this.#readLooseRefs(name, found);
      } else if (isRefName(name)) {
        const ref = await readLooseRef(this.path, name, this.format);
        if (ref.kind === "oid") found.push({ name, oid: ref.oid });
      }
    }
  }

  /**
   * Replaces all refs by these. Annotated tags without `peeled` are peeled here if their objects are in the store.
   * Hold {@link lock} if other processes may do the same.
   *
   * @throws {GitStoreError} `bad_ref_name`, `bad_oid`
   */
  async replaceRefs(refs: Iterable<Ref>): Promise<void> {
    const peeled = [...refs].map((ref) => (ref.peeled === undefined ? this.#peel(ref) : ref));
    await replaceFile(join(this.path, "packed-refs"), formatPackedRefs(peeled, this.format));
    // Loose refs would take precedence over the new file.
    const loose: Ref[] = [];
    await this.#readLooseRefs("refs", loose);
    for (const { name } of loose) await rm(join(this.path, name), { force: true });
  }

  #peel(ref: Ref): Ref {
    let { oid } = ref;
    while (isOid(oid, this.format) && this.objects.has(oid) && this.objects.info(oid).type === "tag") {
      oid = parseTag(this.objects.read(oid).content, this.format).object;
    }
    return oid === ref.oid ? ref : { ...ref, peeled: oid };
  }

  /** Indexes a pack into the store, thin or not: see `indexPack`. Its objects are readable once the promise fulfils. */
  async receivePack(
    source: AsyncIterable<Uint8Array>,
    options: Omit<IndexPackOptions, "folder" | "format" | "bases"> = {},
  ): Promise<IndexedPack> {
    const folder = join(this.path, "objects", "pack");
    const pack = await indexPack(source, { ...options, folder, format: this.format, bases: this.objects });
    this.objects.refresh();
    return pack;
  }

  /**
   * Moves the files of a corrupt pack to `corrupt/` in the repository, where nothing reads them and they can be examined.
   *
   * @param name `pack-<checksum>`
   */
  async quarantinePack(name: string): Promise<void> {
    const folder = join(this.path, "objects", "pack");
    const quarantine = join(this.path, "corrupt");
    await mkdir(quarantine, { recursive: true });
    const files = (await readdir(folder)).filter((file) => file.startsWith(`${name}.`));
    // The .idx first: without it readers ignore the pack.
    for (const file of files.toSorted((a, b) => Number(b.endsWith(".idx")) - Number(a.endsWith(".idx")))) {
      // Replaces a file or folder of this name from an earlier call.
      await rm(join(quarantine, file), { recursive: true, force: true });
      await rename(join(folder, file), join(quarantine, file));
    }
    this.objects.refresh();
  }

  /** Removes a pack. Processes that have it open can still read it. @param name `pack-<checksum>` */
  async removePack(name: string): Promise<void> {
    // Loaded here: few processes remove packs.
    const { removePack } = await import("./remove-pack.ts");
    await removePack(join(this.path, "objects", "pack"), name);
    this.objects.refresh();
  }

  /** Removes `objects/info/commit-graph` because it names removed commits. The next bitmaps bring a new one. */
  async removeCommitGraph(): Promise<void> {
    await rm(join(this.path, "objects", "info", "commit-graph"), { force: true });
  }

  /** Acquires a lock of this repository among all processes. `name` states its purpose. */
  async lock(name: string, options: LockOptions = {}): Promise<Lock> {
    return acquireLock(join(this.path, `${name}.lock~`), options);
  }

  /** Removes temporary files of processes that have ended. */
  async removeLeftovers(): Promise<string[]> {
    return removeLeftovers(this.path);
  }

  /** Registers a function that closes something which reads the repository. {@link close} calls it. */
  onClose(close: () => void): void {
    this.#closers.push(close);
  }

  /** Closes the files of the repository. A handler that serves it then closes its own after the last response. */
  close(): void {
    for (const close of this.#closers.splice(0)) close();
    this.objects.close();
  }
}

/** gitrepository-layout and `Documentation/technical/repository-version.txt`: unknown extensions must be refused. */
function formatOf(config: GitConfig, path: string): ObjectFormat {
  const version = config.get("core.repositoryformatversion") ?? "0";
  const refuse = (what: string): GitStoreError =>
    new GitStoreError("unsupported_repository", `open ${path}: ${what}`, { path });
  if (version === "0") return "sha1";
  if (version !== "1") throw refuse("its repository format is newer than 1");
  for (const key of config.keys()) {
    if (key.startsWith("extensions.") && !KNOWN_EXTENSIONS.has(key)) throw refuse(`it uses ${key}`);
  }
  const format = config.get("extensions.objectformat") ?? "sha1";
  if (format !== "sha1" && format !== "sha256") throw refuse("its object format is unknown");
  return format;
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Value of a loose ref. */
export type LooseRef =
  | { readonly kind: "oid"; readonly oid: Oid }
  | { readonly kind: "symbolic" | "missing" | "folder" };

/** Reads the file of a loose ref. Another process may replace a ref by a folder of refs, or such a folder by a ref. @throws {GitStoreError} `corrupt_repository` */
export async function readLooseRef(
  repositoryPath: string,
  name: string,
  format: ObjectFormat,
): Promise<LooseRef> {
  let text: string;
  try {
    text = (await readFile(join(repositoryPath, name), { encoding: "utf8", flag: READ_FLAGS })).trimEnd();
  } catch (error) {
    if (isMissingFile(error)) return { kind: "missing" };
    if (hasCode(error, "EISDIR")) return { kind: "folder" };
    throw error;
  }
  if (text.startsWith("ref:")) return { kind: "symbolic" };
  if (isOid(text, format)) return { kind: "oid", oid: text };
  throw new GitStoreError("corrupt_repository", `read ${repositoryPath}/${name}: not an id`, { path: name });
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, READ_OPTIONS);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
