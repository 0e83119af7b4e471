import assert from "node:assert/strict";
import { createHmac, hash, hkdfSync } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Secret } from "@devplat/base";
import { ObjectStoreError, fixedCredentials, type ObjectStore } from "@devplat/object-store";
import { openS3Store } from "@devplat/object-store/s3";
import { git, until, type S3Server } from "@devplat/testkit";

/*
 * Reads a bucket by the description of its format, without code of the object tier: so a fault of the tier that its own
 * reader shares is found, too.
 */

const SLICE_BYTES = 1 << 20;
const DIGEST_BYTES = 32;
/** Milliseconds for which an instance does not ask for a manifest again. */
const MANIFEST_AGE_MS = 1000;
const KEY_ID_BYTES = 8;
/** Reads of a manifest while instances replace it. */
const MAX_READS = 20;
const HEAD = /^\{"format":1,"key_id":"[\da-f]{16}","hmac":"([\da-f]{64})","manifest":/;

interface NamedObject {
  readonly name: string;
  readonly length: number;
  readonly sha256: string;
  readonly slices?: string;
}

/** Members of a manifest that the tests look at. */
export interface ReadManifest {
  readonly generation: number;
  readonly epoch: number;
  readonly fence: number;
  readonly object_format: string | null;
  readonly packs: readonly { readonly pack: string; readonly files: Readonly<Record<string, NamedObject>> }[];
  readonly responses: readonly { readonly key: string; readonly object: NamedObject }[];
  readonly refs: readonly (readonly [name: string, oid: string])[];
  readonly retained_refs: readonly (readonly [oid: string, since: number])[];
  readonly tombstones: readonly { readonly name: string }[];
  readonly written_at: number;
  readonly written_by: string;
}

export interface BucketReaderParts {
  readonly server: S3Server;
  /** Address of the code host. */
  readonly hostUrl: string;
  /** `cache.storage_path` */
  readonly prefix: string;
  /** In hex. */
  readonly encryptionKey: string;
  /** Folder for repositories that are made of packs. */
  readonly folder: string;
  /** Name of the object with the manifest of a repository. Default: it is the same for ever. */
  readonly manifestName?: (owner: string, name: string) => Promise<string | undefined>;
}

/** An independent reader of a bucket. */
export class BucketReader {
  readonly store: ObjectStore;
  readonly #parts: BucketReaderParts;
  readonly #tierKey: Buffer;
  /** Objects are immutable, so each is read once. */
  readonly #checked = new Set<string>();
  #repositories = 0;

  constructor(parts: BucketReaderParts) {
    this.#parts = parts;
    const { endpoint, bucket, region, accessKeyId, secretAccessKey } = parts.server;
    this.store = openS3Store({
      endpoint,
      bucket,
      region,
      credentials: fixedCredentials(accessKeyId, new Secret(secretAccessKey)),
      timeoutMs: 20_000,
    });
    this.#tierKey = derive(
      Buffer.from(parts.encryptionKey, "hex"),
      "svc object tier: key from the encryption key, 1",
    );
  }

  /** Key in the bucket of a file of a repository, such as `manifest.json`. */
  keyOf(owner: string, name: string, file: string): string {
    const { prefix, hostUrl } = this.#parts;
    return `${prefix}/v1/${hash("sha256", hostUrl)}/${owner}/${name}/${file}`;
  }

  async bytes(key: string): Promise<Buffer | undefined> {
    try {
      const found = await this.store.get(key, { traffic: "control" });
      assert.ok(found.modified);
      return Buffer.concat((await found.body.toArray()) as Buffer[]);
    } catch (error) {
      if (error instanceof ObjectStoreError && error.code === "missing") return undefined;
      throw error;
    }
  }

  /** Reads a manifest. Fails if its HMAC is not right. @returns undefined if there is none */
  async manifest(owner: string, name: string): Promise<ReadManifest | undefined> {
    const bytes = await this.#manifestBytes(owner, name);
    if (bytes === undefined) return undefined;
    const text = bytes.toString();
    const [head = "", mac] = HEAD.exec(text) ?? [];
    assert.notEqual(head, "", `the manifest begins with ${text.slice(0, 80)}`);
    const content = text.slice(head.length, -1);
    assert.equal(mac, this.#mac(1, owner, name, content), "the HMAC of the manifest");
    return JSON.parse(content) as ReadManifest;
  }

  /** Waits until the bucket has the tip of `main`, and then for so long that no instance relies on an older manifest. */
  async hasTip(owner: string, name: string, path: string): Promise<void> {
    const tip = await git(["-C", path, "rev-parse", "refs/heads/main"]);
    const isTip = ([ref, oid]: ReadManifest["refs"][number]): boolean =>
      ref === "refs/heads/main" && oid === tip;
    let last: ReadManifest | undefined;
    await until(
      async () => (last = await this.manifest(owner, name))?.refs.some(isTip) === true,
      () => `the manifest is ${JSON.stringify(last)}`,
    );
    await sleep(MANIFEST_AGE_MS);
  }

  /** A manifest of any format and content that has the right key. */
  seal(format: number, owner: string, name: string, content: string): Buffer {
    const id = derive(this.#tierKey, "svc object tier: id of the key, 1").toString("hex", 0, KEY_ID_BYTES);
    const mac = this.#mac(format, owner, name, content);
    return Buffer.from(`{"format":${format},"key_id":"${id}","hmac":"${mac}","manifest":${content}}`);
  }

  /**
   * Checks that each object of the manifest is there with the bytes that it promises, and that stock git finds the packs and
   * refs complete.
   *
   * @returns the manifest
   */
  async check(owner: string, name: string): Promise<ReadManifest | undefined> {
    const manifest = await this.manifest(owner, name);
    if (manifest === undefined) return undefined;
    const files = manifest.packs.flatMap((pack) => Object.values(pack.files));
    const objects = [...files, ...manifest.responses.map(({ object }) => object)];
    const dead = new Set(manifest.tombstones.map((each) => each.name));
    for (const object of objects) {
      assert.ok(!dead.has(object.name), `${object.name} is named, and has a tombstone`);
      const key = this.keyOf(owner, name, object.name);
      if (this.#checked.has(key)) {
        assert.equal((await this.store.head(key)).length, object.length, `the length of ${object.name}`);
      } else {
        await this.#checkObject(key, object);
        this.#checked.add(key);
      }
    }
    if (manifest.packs.length > 0) await this.#checkPacks(owner, name, manifest);
    return manifest;
  }

  async close(): Promise<void> {
    await this.store.close();
  }

  async #manifestBytes(owner: string, name: string): Promise<Buffer | undefined> {
    const { manifestName } = this.#parts;
    if (manifestName === undefined) return this.bytes(this.keyOf(owner, name, "manifest.json"));
    // An instance may replace it, and delete the old one, in between.
    for (let reads = 0; reads < MAX_READS; reads++) {
      const current = await manifestName(owner, name);
      if (current === undefined) return undefined;
      const bytes = await this.bytes(this.keyOf(owner, name, current));
      if (bytes !== undefined) return bytes;
    }
    return assert.fail(`the manifest of ${owner}/${name} that the database names is not in the bucket`);
  }

  #mac(format: number, owner: string, name: string, content: string): string {
    const context = JSON.stringify(["svc manifest", format, this.#parts.hostUrl, owner, name]);
    const key = derive(this.#tierKey, "svc object tier: HMAC of manifests, 1");
    return createHmac("sha256", key).update(`${context}\n${content}`).digest("hex");
  }

  async #checkObject(key: string, { name, length, sha256, slices }: NamedObject): Promise<void> {
    const bytes = await this.bytes(key);
    assert.ok(bytes !== undefined, `${name} is named by the manifest, and not in the bucket`);
    assert.equal(bytes.length, length, `the length of ${name}`);
    if (slices === undefined) {
      assert.equal(hash("sha256", bytes), sha256, `the checksum of ${name}`);
      return;
    }
    const list = await this.bytes(`${key}.slices`);
    assert.ok(list !== undefined, `the slice list of ${name} is not in the bucket`);
    assert.equal(hash("sha256", list), slices, `the checksum of the slice list of ${name}`);
    assert.ok([slices, hash("sha256", bytes)].includes(sha256), `the checksum of ${name}`);
    for (let at = 0; at * SLICE_BYTES < bytes.length; at++) {
      const digest: Buffer = hash(
        "sha256",
        bytes.subarray(at * SLICE_BYTES, (at + 1) * SLICE_BYTES),
        "buffer",
      );
      const wanted: Buffer = list.subarray(at * DIGEST_BYTES, (at + 1) * DIGEST_BYTES);
      assert.ok(digest.equals(wanted), `slice ${at} of ${name}`);
    }
  }

  /** Makes a repository of the packs and refs alone. */
  async #checkPacks(owner: string, name: string, manifest: ReadManifest): Promise<void> {
    const path = join(this.#parts.folder, `of-bucket-${++this.#repositories}`);
    await git(["init", "-q", "--bare", `--object-format=${manifest.object_format}`, path]);
    await mkdir(join(path, "objects/pack"), { recursive: true });
    for (const { pack, files } of manifest.packs) {
      for (const kind of ["pack", "idx"]) {
        const bytes = await this.bytes(this.keyOf(owner, name, files[kind]?.name ?? ""));
        await writeFile(join(path, "objects/pack", `${pack}.${kind}`), bytes ?? "");
      }
    }
    const kept = manifest.retained_refs.map(([oid]) => [`refs/kept/${oid}`, oid] as const);
    const refs = [...manifest.refs.map(([ref, oid]) => [ref, oid] as const), ...kept];
    await git(["-C", path, "update-ref", "--stdin"], {
      input: refs.map(([ref, oid]) => `update ${ref} ${oid}\n`).join(""),
    });
    await git(["-C", path, "fsck", "--full", "--strict", "--no-dangling"]);
    await rm(path, { recursive: true });
  }
}

function derive(key: Buffer, use: string): Buffer {
  return Buffer.from(hkdfSync("sha256", key, "", use, DIGEST_BYTES));
}
