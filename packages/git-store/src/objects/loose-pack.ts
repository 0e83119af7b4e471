import { GitStoreError, isShortage } from "../errors.ts";
import { hashObject, oidBytes, typeName } from "../object-format.ts";
import type { ObjectDatabase } from "../object-database.ts";
import type { Oid } from "../oid.ts";
import { readLooseObject } from "./loose-object.ts";
import type { RawObject } from "../pack/base-cache.ts";
import { FANOUT_BYTES, INDEX_SIGNATURE, INDEX_VERSION, PackIndex } from "../pack/pack-index.ts";
import { Pack } from "../pack/pack.ts";
import { PackOrder } from "../pack/pack-order.ts";
import { PACK_HEADER_BYTES, type PackEntry } from "../pack/pack-entry.ts";

/** Files that are opened between two pauses: about a millisecond. */
const PAUSE = 32;

/**
 * Makes a pack of loose objects that an index can add to its packs. It has the tables of a pack and no file: its entries are read
 * from the files of the objects, undeltified. Objects whose file is damaged or removed are left out.
 *
 * @param database opens files, also those that objects are moved to later
 * @param ids may contain an id twice
 * @returns undefined when no object is left
 */
export function* loosePack(
  database: ObjectDatabase,
  ids: readonly Oid[],
  packId: number,
): Generator<void, Pack | undefined, undefined> {
  const objects: LooseEntry[] = [];
  let previous = "";
  for (const [at, oid] of ids.toSorted().entries()) {
    if (at % PAUSE === PAUSE - 1) yield;
    if (oid === previous) continue;
    previous = oid;
    const header = headerOf(database, oid);
    if (header !== undefined) objects.push({ oid, ...header });
  }
  if (objects.length === 0) return undefined;
  const index = indexOf(database, objects);
  const positions = Uint32Array.from(objects, (_, at) => at);
  const offsets = new Float64Array(objects.length + 1);
  offsets[0] = PACK_HEADER_BYTES;
  // Each entry needs a different offset. The size of the content is a measure of the bytes to send.
  for (const [at, { size }] of objects.entries()) offsets[at + 1] = offsets[at]! + size + 1;
  return Pack.ofLoose(
    packId,
    database.folder,
    index,
    new PackOrder(positions, positions, offsets),
    new LooseEntries(database, objects, offsets),
  );
}

interface LooseEntry {
  readonly oid: Oid;
  readonly type: number;
  readonly size: number;
}

/** Reads the objects of a pack that is made of loose objects. */
export class LooseEntries {
  readonly #database: ObjectDatabase;
  readonly #objects: readonly LooseEntry[];
  readonly #offsets: Float64Array;
  /** The folders of the objects. The database forgets them when it is closed, but a response may still go on. */
  readonly #folders: readonly string[];

  constructor(database: ObjectDatabase, objects: readonly LooseEntry[], offsets: Float64Array) {
    this.#database = database;
    this.#folders = database.sources.folders;
    this.#objects = objects;
    this.#offsets = offsets;
  }

  entry(position: number): PackEntry {
    const { type, size } = this.#objects[position]!;
    const start = this.#offsets[position]!;
    return { type, size, start, dataStart: start, end: this.#offsets[position + 1]!, base: -1 };
  }

  /**
   * Reads an object and checks its id. If another process has packed the object since, it is read from the pack.
   *
   * @throws {GitStoreError} `missing_object`, `corrupt_object`, `corrupt_zlib`
   */
  read(position: number): RawObject {
    const { oid } = this.#objects[position]!;
    const database = this.#database;
    let object = database.readRaw(oid);
    if (object === undefined) {
      database.refresh();
      object = database.readRaw(oid);
    }
    for (const folder of this.#folders) object ??= readLooseObject(folder, oid);
    if (object === undefined) {
      throw new GitStoreError("missing_object", `read the loose object ${oid}: its file was removed`, {
        oid,
      });
    }
    if (hashObject(database.format, typeName(object.type), object.content) !== oid) {
      throw new GitStoreError("corrupt_object", `read the loose object ${oid}: its content has another id`, {
        oid,
      });
    }
    return object;
  }
}

function headerOf(database: ObjectDatabase, oid: Oid): { type: number; size: number } | undefined {
  try {
    return database.loose.header(oid);
  } catch (error) {
    if (isShortage(error)) throw error;
    // A damaged or unreadable object that no ref reaches must not stop a clone. A request that needs it finds it missing.
    return undefined;
  }
}

/** The table of an `.idx` file, without check-sums. */
function indexOf({ format }: ObjectDatabase, objects: readonly LooseEntry[]): PackIndex {
  const width = oidBytes(format);
  const tableStart = 8 + FANOUT_BYTES;
  const bytes = Buffer.alloc(tableStart + objects.length * (width + 8) + 2 * width);
  bytes.writeUInt32BE(INDEX_SIGNATURE, 0);
  bytes.writeUInt32BE(INDEX_VERSION, 4);
  let first = 0;
  for (const [at, { oid }] of objects.entries()) {
    bytes.write(oid, tableStart + at * width, "hex");
    const byte = bytes[tableStart + at * width]!;
    for (; first < byte; first++) bytes.writeUInt32BE(at, 8 + first * 4);
  }
  for (; first < 256; first++) bytes.writeUInt32BE(objects.length, 8 + first * 4);
  return new PackIndex(bytes, format, "of loose objects");
}
