import { closeSync } from "node:fs";
import { basename } from "node:path";
import type { ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError } from "../errors.ts";
import { oidBytes } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import { decodePackHeader, PACK_HEADER_BYTES, type PackEntry } from "./pack-entry.ts";
import { PackIndex } from "./pack-index.ts";
import { PackOrder } from "./pack-order.ts";
import type { RawObject } from "./base-cache.ts";
import type { PagedFile } from "./page-cache.ts";
import { openFile, readExactly } from "../read-file.ts";

/** A pack in a form that `postMessage` sends to a worker thread without copying its tables. */
export interface SharedPack {
  readonly path: string;
  readonly format: ObjectFormat;
  readonly index: SharedArrayBuffer;
  readonly indexPositions: Uint32Array;
  readonly packPositions: Uint32Array;
  readonly offsets: Float64Array;
}

/** Objects of a pack that has no file, undeltified. */
export interface EntriesWithoutFile {
  entry(position: number): PackEntry;
  /** @throws {GitStoreError} `missing_object`, `corrupt_object`, `corrupt_zlib` */
  read(position: number): RawObject;
}

/**
 * An open pack: its tables in shared memory (44 bytes per object with SHA-1) and a file descriptor. Its data are
 * read through a page cache. Objects are addressed by pack position (see {@link PackOrder}).
 * An open pack stays readable after its files are removed.
 */
export class Pack implements PagedFile {
  readonly id: number;
  readonly fd: number;
  /** Path of the `.pack` file. */
  readonly path: string;
  /** `pack-<checksum>`. */
  readonly name: string;
  /** Size of the `.pack` file, bytes. */
  readonly size: number;
  readonly format: ObjectFormat;
  readonly index: PackIndex;
  readonly order: PackOrder;
  /**
   * Reads the objects of a pack that is made of loose objects. It has no file: {@link fd} is -1, and its offsets only have an order.
   * Undefined for each pack of an `ObjectDatabase`.
   */
  readonly loose: EntriesWithoutFile | undefined;
  #open = true;

  private constructor(
    id: number,
    fd: number,
    path: string,
    size: number,
    index: PackIndex,
    order: PackOrder,
    loose?: EntriesWithoutFile,
  ) {
    this.id = id;
    this.fd = fd;
    this.path = path;
    this.name = basename(path, ".pack");
    this.size = size;
    this.format = index.format;
    this.index = index;
    this.order = order;
    this.loose = loose;
  }

  /**
   * Opens a pack whose `.idx` is in the same folder.
   *
   * @param path path of the `.pack` file
   * @param id number, unique among the packs of one page cache
   * @throws {GitStoreError} `corrupt_index`, `not_a_pack`, `truncated`; system errors unchanged (`ENOENT`)
   */
  static open(path: string, format: ObjectFormat, id = 0): Pack {
    return Pack.#openFile(path, id, (size, fd) => {
      const index = PackIndex.read(path.replace(/\.pack$/u, ".idx"), format);
      const order = PackOrder.read(path.replace(/\.pack$/u, ".rev"), index, size);
      const header = Buffer.allocUnsafe(PACK_HEADER_BYTES);
      readExactly(fd, header, 0, path);
      const trailer = Buffer.allocUnsafe(oidBytes(format));
      readExactly(fd, trailer, size - trailer.length, path);
      if (decodePackHeader(header) !== index.count || !trailer.equals(index.packChecksum)) {
        throw new GitStoreError("corrupt_index", `open ${path}: its .idx belongs to another pack`, { path });
      }
      return { index, order };
    });
  }

  /** Opens a pack in a worker thread, with the tables that another thread has read. */
  static attach(shared: SharedPack, id = 0): Pack {
    return Pack.#openFile(shared.path, id, () => ({
      index: new PackIndex(Buffer.from(shared.index), shared.format, shared.path),
      order: new PackOrder(shared.indexPositions, shared.packPositions, shared.offsets),
    }));
  }

  /** Makes a pack without a file. @param folder where its objects are, for error messages */
  static ofLoose(
    id: number,
    folder: string,
    index: PackIndex,
    order: PackOrder,
    loose: EntriesWithoutFile,
  ): Pack {
    return new Pack(id, -1, `${folder}/loose-${id}.pack`, order.offsets.at(-1)!, index, order, loose);
  }

  static #openFile(
    path: string,
    id: number,
    tables: (size: number, fd: number) => { index: PackIndex; order: PackOrder },
  ): Pack {
    const { fd, size } = openFile(path);
    try {
      const { index, order } = tables(size, fd);
      return new Pack(id, fd, path, size, index, order);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** Returns the argument for {@link Pack.attach}. */
  shared(): SharedPack {
    return {
      path: this.path,
      format: this.format,
      index: this.index.bytes.buffer as unknown as SharedArrayBuffer,
      indexPositions: this.order.indexPositions,
      packPositions: this.order.packPositions,
      offsets: this.order.offsets,
    };
  }

  /** Number of objects in the pack. */
  get count(): number {
    return this.index.count;
  }

  /** Finds the pack position of the object whose id is in `oid` at `start`, or -1. */
  find(oid: Uint8Array, start = 0): number {
    const position = this.index.find(oid, start);
    return position < 0 ? -1 : this.order.packPositions[position]!;
  }

  /** Returns the id of the object at a pack position, in hex. */
  oidAt(position: number): Oid {
    return this.index.oidAt(this.order.indexPositions[position]!);
  }

  /** Returns the offset in `index.bytes` of the id of the object at a pack position. */
  oidStartAt(position: number): number {
    return this.index.oidStartAt(this.order.indexPositions[position]!);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    if (this.fd >= 0) closeSync(this.fd);
  }
}
