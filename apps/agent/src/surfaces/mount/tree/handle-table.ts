import { FileError } from "./file-error.ts";

/** Open files and directories by the number that the kernel uses for them. */
export class HandleTable<Handle> {
  readonly #handles = new Map<bigint, Handle>();
  #last = 0n;

  get size(): number {
    return this.#handles.size;
  }

  add(handle: Handle): bigint {
    this.#handles.set(++this.#last, handle);
    return this.#last;
  }

  /** @throws FileError EBADF */
  get(id: bigint): Handle {
    const handle = this.#handles.get(id);
    if (handle === undefined) throw new FileError("EBADF");
    return handle;
  }

  /** @throws FileError EBADF */
  remove(id: bigint): Handle {
    const handle = this.get(id);
    this.#handles.delete(id);
    return handle;
  }
}
