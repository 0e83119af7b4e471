import { createHmac, hash, randomBytes } from "node:crypto";
import type { Secret } from "@devplat/base";
import { checkKey } from "@devplat/object-store";
import type { RepositoryId } from "../../access/repository-id.ts";
import { bucketPrefix } from "../../config/cache-folder.ts";

/** Version of the layout of the bucket. */
const LAYOUT = "v1";
/** Folder of the manifests of a repository in a bucket without conditions. */
export const MANIFESTS_FOLDER = "manifests/";
/** Random bytes in the name of an object. An upload never replaces an object of another one. */
const RANDOM_BYTES = 8;
/** Hex digits of a hidden name: half a SHA-256, which no two names of a code host share. */
const HIDDEN_DIGITS = 32;

export interface ObjectNamesOptions {
  /** `cache.storage_path`: names between which and the rest is a slash. Empty: the root of the bucket. */
  readonly prefix: string;
  /** `host.url` */
  readonly hostUrl: string;
  /** Set: owner and name are replaced by their HMAC (`cache.object_hide_names`). */
  readonly hideKey: Secret<Buffer> | undefined;
}

/** Names of objects in the bucket. Each of them passes `checkKey`, or the method throws ObjectStoreError `invalid_key`. */
export class ObjectNames {
  /** Folder of all code hosts, with the slash. */
  readonly root: string;
  /** Folder of all repositories of the code host, with the slash. */
  readonly host: string;
  readonly #hideKey: Secret<Buffer> | undefined;

  constructor({ prefix, hostUrl, hideKey }: ObjectNamesOptions) {
    const trimmed = bucketPrefix(prefix);
    this.root = trimmed === "" ? `${LAYOUT}/` : `${trimmed}/${LAYOUT}/`;
    this.host = `${this.root}${hash("sha256", hostUrl)}/`;
    this.#hideKey = hideKey;
    checkKey(`${this.host}owner/name/manifest.json`);
  }

  /** Folder of a repository, with the slash. */
  folder(id: RepositoryId): string {
    return `${this.host}${this.#shown("owner", id.owner)}/${this.#shown("name", id.key)}/`;
  }

  manifest(id: RepositoryId): string {
    return checked(`${this.folder(id)}manifest.json`);
  }

  /** @param name that of a StoredObject */
  object(id: RepositoryId, name: string): string {
    return checked(this.folder(id) + name);
  }

  /** The list of slices of an object. @param name that of the StoredObject */
  slices(id: RepositoryId, name: string): string {
    return checked(`${this.folder(id)}${name}.slices`);
  }

  #shown(kind: "owner" | "name", text: string): string {
    if (this.#hideKey === undefined) return kind === "owner" ? text : text.slice(text.indexOf("/") + 1);
    const mac = createHmac("sha256", this.#hideKey.reveal()).update(`${kind}\0${text}`);
    return mac.digest("hex").slice(0, HIDDEN_DIGITS);
  }
}

/** Name for the object of a response, below the folder of its repository. @param writer id of the instance */
export function newResponseName(key: string, writer: string): string {
  return `responses/${key}-${writer}-${randomName()}`;
}

/** Name for the files of a pack, without their extensions. @param pack `pack-<checksum>` */
export function newPackName(pack: string, writer: string): string {
  return `packs/${writer}-${randomName()}-${pack.replace(/^pack-/, "")}`;
}

/** Name for a manifest of a bucket without conditions. @param writer id of the instance */
export function newManifestName(generation: number, writer: string): string {
  return `${MANIFESTS_FOLDER}${generation}-${writer}-${randomName()}.json`;
}

function randomName(): string {
  return randomBytes(RANDOM_BYTES).toString("hex");
}

function checked(key: string): string {
  checkKey(key);
  return key;
}
