import { isOid, type ObjectFormat } from "@devplat/git-protocol";
import { isRefName, type Ref } from "@devplat/git-store";
import {
  SLICE_BYTES,
  type Manifest,
  type ManifestPack,
  type ManifestResponse,
  type PackFile,
  type StoredObject,
  type Tombstone,
} from "./manifest.ts";

/** Bytes of the largest manifest: 400,000 refs, or 140,000 responses. A larger one would hold up the process that reads it. */
export const MAX_MANIFEST_BYTES = 64 << 20;
/** Bytes of the largest object that S3 takes: 5 TiB. */
const MAX_OBJECT_BYTES = 5 * 2 ** 40;
/** Packs are merged from about ten on. */
const MAX_PACKS = 10_000;
const MAX_RESPONSES = 200_000;
const MAX_REFS = 1_000_000;
const MAX_TOMBSTONES = 1_000_000;
/** Bytes of a ref's name, as a file system of git's server allows them. */
const MAX_REF_NAME = 4096;

/** Names of objects: one folder and one file, which every store keeps as they are. */
const OBJECT_NAME = /^(?:packs|responses)\/[\dA-Za-z][\w.-]{0,199}$/;
const SLICES_SUFFIX = ".slices";
const SHA256 = /^[\da-f]{64}$/;
const PACK_NAME = /^pack-(?:[\da-f]{40}|[\da-f]{64})$/;
const WRITER = /^[\w-]{1,64}$/;
const PACK_FILES: readonly PackFile[] = ["pack", "idx", "rev", "bitmap", "graph"];

/** A text is not a manifest, or a manifest cannot be written. The message has no content of it. */
export class ManifestFault extends Error {
  /** @param at path of the wrong member */
  constructor(at: string, wanted: string) {
    super(`${at} is not ${wanted}`);
    this.name = "ManifestFault";
  }
}

/** JSON of a manifest, without its HMAC. */
export function encodeManifest(manifest: Manifest): string {
  return JSON.stringify({
    generation: manifest.generation,
    epoch: manifest.epoch,
    fence: manifest.fence,
    object_format: manifest.objectFormat ?? null,
    packs: manifest.packs.map(({ pack, files }) => ({
      pack,
      files: Object.fromEntries(
        Object.entries(files).flatMap(([kind, file]) =>
          file === undefined ? [] : [[kind, encodeObject(file)]],
        ),
      ),
    })),
    responses: manifest.responses.map(({ key, object, usedAt }) => ({
      key,
      object: encodeObject(object),
      used_at: usedAt,
    })),
    // Arrays, because there can be very many.
    refs: manifest.refs.map(({ name, oid, peeled }) =>
      peeled === undefined ? [name, oid] : [name, oid, peeled],
    ),
    retained_refs: manifest.retainedRefs.map(({ oid, since }) => [oid, since]),
    tombstones: manifest.tombstones.map(({ name, generation, at }) => ({ name, generation, at })),
    written_at: manifest.writtenAt,
    written_by: manifest.writtenBy,
  });
}

/** Reads what {@link encodeManifest} wrote. Unknown members are refused. @throws ManifestFault */
export function decodeManifest(text: string): Manifest {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The parser's message would quote its input.
    throw new ManifestFault("the manifest", "JSON");
  }
  const members = record(parsed, "the manifest", [
    "generation",
    "epoch",
    "fence",
    "object_format",
    "packs",
    "responses",
    "refs",
    "retained_refs",
    "tombstones",
    "written_at",
    "written_by",
  ]);
  const objectFormat = formatOf(members["object_format"]);
  const generation = count(members["generation"], "generation");
  if (generation < 1) throw new ManifestFault("generation", "at least 1");
  const manifest = {
    generation,
    epoch: count(members["epoch"], "epoch"),
    fence: count(members["fence"], "fence"),
    objectFormat,
    packs: list(members["packs"], "packs", MAX_PACKS, decodePack),
    responses: list(members["responses"], "responses", MAX_RESPONSES, decodeResponse),
    refs: list(members["refs"], "refs", MAX_REFS, (value, at) => decodeRef(value, at, objectFormat)),
    retainedRefs: list(members["retained_refs"], "retained_refs", MAX_REFS, (value, at) => {
      const [oid, since] = tuple(value, at, 2, 2);
      return { oid: oidOf(oid, `${at}[0]`, objectFormat), since: count(since, `${at}[1]`) };
    }),
    tombstones: list(members["tombstones"], "tombstones", MAX_TOMBSTONES, decodeTombstone),
    writtenAt: count(members["written_at"], "written_at"),
    writtenBy: matching(members["written_by"], "written_by", WRITER, "the id of an instance"),
  };
  if (objectFormat === undefined && manifest.packs.length > 0)
    throw new ManifestFault("object_format", "there, but there are packs");
  distinct(manifest.packs, "packs", ({ pack }) => pack);
  distinct(manifest.responses, "responses", ({ key }) => key);
  distinct(manifest.refs, "refs", ({ name }) => name);
  return manifest;
}

function encodeObject({ name, length, sha256, slicesSha256 }: StoredObject): object {
  return { name, length, sha256, ...(slicesSha256 !== undefined && { slices: slicesSha256 }) };
}

function decodeObject(value: unknown, at: string): StoredObject {
  const members = record(value, at, ["name", "length", "sha256"], ["slices"]);
  const length = count(members["length"], `${at}.length`);
  if (length > MAX_OBJECT_BYTES) throw new ManifestFault(`${at}.length`, "the length of an object");
  // An object of one slice has no list of slices, and every other one has.
  const hasList = Object.hasOwn(members, "slices");
  if (hasList !== length > SLICE_BYTES) throw new ManifestFault(`${at}.slices`, "as the length wants it");
  return {
    name: objectName(members["name"], `${at}.name`),
    length,
    sha256: checksum(members["sha256"], `${at}.sha256`),
    slicesSha256: hasList ? checksum(members["slices"], `${at}.slices`) : undefined,
  };
}

function decodePack(value: unknown, at: string): ManifestPack {
  const members = record(value, at, ["pack", "files"]);
  const files = record(members["files"], `${at}.files`, ["pack", "idx"], PACK_FILES.slice(2));
  return {
    pack: matching(members["pack"], `${at}.pack`, PACK_NAME, "the name of a pack"),
    files: Object.fromEntries(
      PACK_FILES.filter((kind) => Object.hasOwn(files, kind)).map((kind) => [
        kind,
        decodeObject(files[kind], `${at}.files.${kind}`),
      ]),
    ),
  };
}

function decodeResponse(value: unknown, at: string): ManifestResponse {
  const members = record(value, at, ["key", "object", "used_at"]);
  return {
    key: checksum(members["key"], `${at}.key`),
    object: decodeObject(members["object"], `${at}.object`),
    usedAt: count(members["used_at"], `${at}.used_at`),
  };
}

function decodeRef(value: unknown, at: string, format: ObjectFormat | undefined): Ref {
  const [name, oid, peeled] = tuple(value, at, 2, 3);
  if (typeof name !== "string" || name.length > MAX_REF_NAME || !isRefName(name))
    throw new ManifestFault(`${at}[0]`, "the name of a ref");
  const ref = { name, oid: oidOf(oid, `${at}[1]`, format) };
  return peeled === undefined ? ref : { ...ref, peeled: oidOf(peeled, `${at}[2]`, format) };
}

function decodeTombstone(value: unknown, at: string): Tombstone {
  const members = record(value, at, ["name", "generation", "at"]);
  return {
    name: objectName(members["name"], `${at}.name`),
    generation: count(members["generation"], `${at}.generation`),
    at: count(members["at"], `${at}.at`),
  };
}

function formatOf(value: unknown): ObjectFormat | undefined {
  if (value === null) return undefined;
  if (value === "sha1" || value === "sha256") return value;
  throw new ManifestFault("object_format", "null, sha1 or sha256");
}

/** A mapping with all of these members, perhaps the optional ones, and no other. */
function record(
  value: unknown,
  at: string,
  needed: readonly string[],
  optional: readonly string[] = [],
): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ManifestFault(at, "a mapping");
  const missing = needed.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) throw new ManifestFault(`${at}.${missing}`, "there");
  const isKnown = (name: string): boolean => needed.includes(name) || optional.includes(name);
  if (!Object.keys(value).every(isKnown)) throw new ManifestFault(at, "free of unknown members");
  return value as Readonly<Record<string, unknown>>;
}

function list<T>(
  value: unknown,
  at: string,
  max: number,
  decode: (value: unknown, at: string) => T,
): readonly T[] {
  if (!Array.isArray(value) || value.length > max)
    throw new ManifestFault(at, `a list of up to ${max} entries`);
  return value.map((each, index) => decode(each, `${at}[${index}]`));
}

function tuple(value: unknown, at: string, min: number, max: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length < min || value.length > max)
    throw new ManifestFault(at, "a list of the right length");
  return value;
}

/** A whole number that is not negative. */
function count(value: unknown, at: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new ManifestFault(at, "a whole number");
  return value as number;
}

function matching(value: unknown, at: string, form: RegExp, wanted: string): string {
  if (typeof value !== "string" || !form.test(value)) throw new ManifestFault(at, wanted);
  return value;
}

const checksum = (value: unknown, at: string): string => matching(value, at, SHA256, "a SHA-256 in hex");

function objectName(value: unknown, at: string): string {
  const name = matching(value, at, OBJECT_NAME, "the name of an object");
  // It would be the list of another object.
  if (name.endsWith(SLICES_SUFFIX)) throw new ManifestFault(at, "the name of an object");
  return name;
}

function oidOf(value: unknown, at: string, format: ObjectFormat | undefined): string {
  if (format === undefined || typeof value !== "string" || !isOid(value, format))
    throw new ManifestFault(at, "an object id of the repository's format");
  return value;
}

function distinct<T>(values: readonly T[], at: string, keyOf: (value: T) => string): void {
  if (new Set(values.map(keyOf)).size !== values.length)
    throw new ManifestFault(at, "a list of different entries");
}
