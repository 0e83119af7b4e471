import { createHash } from "node:crypto";
import { SecretStoreError, type Fields, type SecretDocument } from "@devplat/secret-store";
import { publicMessage } from "../../errors.ts";
import type { CachedSecrets, SecretVersion } from "../../secrets/folder/cached-secrets.ts";
import type { FolderSnapshot, SecretFolder } from "../../secrets/folder/secret-folder.ts";
import { isStoreWide } from "../../secrets/store-health.ts";
import { VolumeError } from "./errors/volume-error.ts";
import { secretFiles, type SecretFiles } from "./content/secret-files.ts";
import type { VolumeOptions } from "./options/volume-options.ts";

/** Values of a volume up to this size are kept while it is mounted, so that a change of one secret reads one. In bytes. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** Reads the secrets of one volume. */
export class VolumeSecrets {
  /** Fields that were read last, by path, with the version that they are of. */
  #kept: ReadonlyMap<string, { readonly version: SecretVersion; readonly fields: Fields }> = new Map();
  readonly #secrets: CachedSecrets;
  readonly #folder: SecretFolder;
  readonly #options: VolumeOptions;

  constructor(secrets: CachedSecrets, folder: SecretFolder, options: VolumeOptions) {
    this.#secrets = secrets;
    this.#folder = folder;
    this.#options = options;
  }

  /**
   * Finds the secrets for a first mount: every one that is named must be there.
   * @throws VolumeError `secret_unreadable`; the reason of the signal
   */
  async lookAll(signal: AbortSignal): Promise<FolderSnapshot> {
    // A decision of the store that is still kept may have changed.
    for (const root of this.#options.secrets) this.#secrets.dropBelow(root);
    const snapshot = await this.look(signal);
    for (const root of this.#options.secrets) {
      const isFolder = root.endsWith("/");
      const found = [...snapshot.secrets.keys()].some((path) =>
        isFolder ? path.startsWith(root) : path === root,
      );
      if (found) continue;
      throw new VolumeError(
        "secret_unreadable",
        isFolder
          ? `there is no secret below ${JSON.stringify(root)}`
          : `there is no secret ${JSON.stringify(root)}`,
        { hint: "Look at the option secrets of the volume, or store the secret first." },
      );
    }
    return snapshot;
  }

  /** Finds the secrets that there are. @throws VolumeError `secret_unreadable`; the reason of the signal */
  async look(signal: AbortSignal): Promise<FolderSnapshot> {
    const snapshot = await this.#folder.look(signal);
    const [fault] = snapshot.faults;
    if (fault !== undefined) throw unreadable(...fault);
    if (snapshot.isTruncated) {
      throw new VolumeError("secret_unreadable", "the volume has too many secrets", {
        hint: "Name fewer folders in the option secrets.",
      });
    }
    return snapshot;
  }

  /** Files of these secrets. One that was removed since the look has none. @throws VolumeError; the reason of the signal */
  async read(versions: ReadonlyMap<string, SecretVersion>, signal: AbortSignal): Promise<SecretFiles> {
    const read = await Promise.all(
      [...versions].map(async ([path, version]): Promise<[string, SecretDocument] | undefined> => {
        const kept = this.#kept.get(path);
        if (kept?.version.version === version.version && kept.version.createdAt === version.createdAt) {
          return [path, { ...version, fields: kept.fields }];
        }
        try {
          return [path, await this.#secrets.read(path, signal)];
        } catch (error) {
          signal.throwIfAborted();
          if (!(error instanceof SecretStoreError)) throw error;
          if (error.code === "not_found") return undefined;
          throw unreadable(path, error);
        }
      }),
    );
    const documents = read.filter((each) => each !== undefined);
    const found = secretFiles(
      new Map(documents.map(([path, { fields }]) => [path, fields])),
      this.#options.layout,
    );
    const bytes = [...found.files.values()].reduce((sum, { length }) => sum + length, 0);
    const kept = bytes > MAX_KEPT_BYTES ? [] : documents;
    this.#kept = new Map(
      kept.map(([path, { version, createdAt, fields }]) => [
        path,
        { version: { version, createdAt }, fields },
      ]),
    );
    return found;
  }

  /** Forgets the values. */
  forget(): void {
    this.#kept = new Map();
  }
}

/** Text that is equal only for equal versions of the same secrets. */
export function fingerprintOf(versions: ReadonlyMap<string, SecretVersion>): string {
  const list = [...versions].map(([path, { version, createdAt }]) => [path, version, createdAt]);
  return createHash("sha256").update(JSON.stringify(list)).digest("hex");
}

function unreadable(path: string, error: SecretStoreError): VolumeError {
  const subject = isStoreWide(error)
    ? "the secrets store cannot be read"
    : `cannot read ${JSON.stringify(path)}`;
  return new VolumeError("secret_unreadable", `${subject}: ${publicMessage(error)}`, { cause: error });
}
