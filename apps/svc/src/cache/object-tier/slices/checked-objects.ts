import type { Readable } from "node:stream";
import { BoundedMap } from "@devplat/base/bounded-map";
import { ObjectStoreError, type ByteRange, type ObjectStore } from "@devplat/object-store";
import type { RepositoryId } from "../../../access/repository-id.ts";
import { SLICE_BYTES, type StoredObject } from "../manifest/manifest.ts";
import type { ObjectNames } from "../object-names.ts";
import { SliceList, listBytes } from "./slice-list.ts";

/** Bytes of all lists in memory. The list of a pack of 1 GB takes 32 KB. */
const MAX_LIST_BYTES = 8 << 20;

export interface CheckedReadOptions {
  /** Default: the whole object. Must be inside the object. */
  readonly range?: ByteRange;
  readonly signal?: AbortSignal;
}

/** Reads objects of the bucket. Bytes go out only after their slice was compared with its checksum. */
export class CheckedObjects {
  readonly #store: ObjectStore;
  readonly #names: ObjectNames;
  readonly #lists = new BoundedMap<string, SliceList>({ max: MAX_LIST_BYTES, sizeOf: ({ bytes }) => bytes });

  constructor(store: ObjectStore, names: ObjectNames) {
    this.#store = store;
    this.#names = names;
  }

  /**
   * Bytes of an object or a range of it, in pieces of up to one slice. The list of slices is read first. A bad slice, or one at
   * which the transfer broke, is read once more. Memory holds up to two slices, and the bytes
   * that the connection has in advance.
   *
   * @throws ObjectStoreError: `damaged` if a slice is bad twice, `missing`; RangeError
   */
  async *read(
    id: RepositoryId,
    object: StoredObject,
    { range = { first: 0, length: object.length }, signal }: CheckedReadOptions = {},
  ): AsyncGenerator<Buffer, void> {
    const end = range.first + range.length;
    if (range.first < 0 || range.length < 0 || end > object.length)
      throw new RangeError(`bytes ${range.first} to ${end} of an object of ${object.length}`);
    if (range.length === 0) return;
    const key = this.#names.object(id, object.name);
    const list = await this.#listOf(id, object, signal);
    const wanted = { first: range.first, end, total: object.length };
    let index = Math.floor(range.first / SLICE_BYTES);
    for (let failures = 0; index * SLICE_BYTES < end;) {
      try {
        for await (const slice of this.#slices(key, index, wanted, signal)) {
          if (!(await list.matches(index, slice))) throw damaged(key, `slice ${index} has other bytes`);
          const offset = index * SLICE_BYTES;
          yield slice.subarray(Math.max(0, range.first - offset), end - offset);
          index++;
          failures = 0;
        }
        if (index * SLICE_BYTES < end) throw damaged(key, "it ends too early");
      } catch (error) {
        signal?.throwIfAborted();
        if (failures++ > 0 || !isPassing(error)) throw error;
      }
    }
  }

  async #listOf(id: RepositoryId, object: StoredObject, signal: AbortSignal | undefined): Promise<SliceList> {
    if (object.slicesSha256 === undefined) return SliceList.ofOne(object);
    const key = this.#names.slices(id, object.name);
    // The checksum is in the key, so that another object of that name has another list.
    const known = this.#lists.get(`${key} ${object.slicesSha256}`);
    if (known !== undefined) return known;
    const list = await onceMore(async () => this.#readList(key, object, signal), signal);
    this.#lists.set(`${key} ${object.slicesSha256}`, list);
    return list;
  }

  async #readList(
    key: string,
    { length, slicesSha256 }: StoredObject,
    signal: AbortSignal | undefined,
  ): Promise<SliceList> {
    const found = await this.#store.get(key, {
      ...(slicesSha256 !== undefined && { sha256: slicesSha256 }),
      ...(signal !== undefined && { signal }),
      traffic: "control",
    });
    if (!found.modified) throw damaged(key, "the store sends nothing");
    if (found.bodyLength !== listBytes(length)) {
      found.body.on("error", () => undefined).destroy();
      throw damaged(key, "it has another length");
    }
    const list = SliceList.read(Buffer.concat((await found.body.toArray()) as Buffer[]), length);
    if (list === undefined) throw damaged(key, "it has another length");
    return list;
  }

  /** Slices from the one with this index to the one with the last wanted byte, by one request. Not compared yet. */
  async *#slices(
    key: string,
    index: number,
    { end, total }: { readonly end: number; readonly total: number },
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Buffer, void> {
    const first = index * SLICE_BYTES;
    const length = Math.min(total, Math.ceil(end / SLICE_BYTES) * SLICE_BYTES) - first;
    const found = await this.#store.get(key, {
      // The store refuses a range of an empty object. That has no slice that is wanted.
      ...(length < total && { range: { first, length } }),
      ...(signal !== undefined && { signal }),
      traffic: "bulk",
    });
    if (!found.modified) throw damaged(key, "the store sends nothing");
    try {
      if (found.length !== total) throw damaged(key, "it has another length");
      yield* inSlices(found.body, length);
    } finally {
      found.body.on("error", () => undefined).destroy();
    }
  }
}

/** Cuts a stream that begins with a slice. The stream itself sees to its length. */
async function* inSlices(body: Readable, length: number): AsyncGenerator<Buffer, void> {
  let left = length;
  let slice = Buffer.allocUnsafeSlow(Math.min(SLICE_BYTES, left));
  let filled = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    for (let at = 0; at < chunk.length;) {
      const copied = chunk.copy(slice, filled, at);
      at += copied;
      filled += copied;
      if (filled < slice.length) continue;
      left -= filled;
      yield slice;
      if (left === 0) return;
      slice = Buffer.allocUnsafeSlow(Math.min(SLICE_BYTES, left));
      filled = 0;
    }
  }
}

/** Tries a second time after a passing fault. */
async function onceMore<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    if (!isPassing(error)) throw error;
    return await work();
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof ObjectStoreError && error.remedy === "retry" && error.code !== "circuit_open";
}

function damaged(key: string, reason: string): ObjectStoreError {
  return new ObjectStoreError("damaged", `Cannot read the object ${JSON.stringify(key)}: ${reason}`);
}
