import { Serializer } from "@devplat/base/serializer";
import type { FileError } from "../file-error.ts";
import type { FileBuffer } from "./file-buffer.ts";

/** The part of the store that a file's bytes are for. Paths are those of the secrets store. */
export type DraftTarget =
  | { readonly kind: "secret"; readonly path: string }
  | { readonly kind: "field"; readonly path: string; readonly field: string };

/** The version that the bytes replace. */
export interface DraftBase {
  /** 0: the secret must not exist. */
  readonly version: number;
  /** The file's bytes in that version; undefined if the file did not exist. */
  readonly bytes: Buffer | undefined;
}

/** Base of bytes that replace nothing. */
export const NO_BASE: DraftBase = { version: 0, bytes: undefined };

/** A name below the mountpoint. */
export interface Place {
  /** Path of the directory, without a slash at either end. */
  readonly directory: string;
  readonly name: string;
}

/** Bytes that a program writes: of an open file, or of a file that is only in memory. */
export class Draft {
  readonly buffer: FileBuffer;
  /** Commits run one after another. */
  readonly turns = new Serializer();
  /** Undefined: the bytes are for no secret. */
  target: DraftTarget | undefined;
  base: DraftBase;
  place: Place;
  /** The name leads to these bytes, and not to the store. */
  isNamed = false;
  /** The file replaces a secret that a program has just removed, and is stored when it is closed. */
  isReplacement = false;
  /** Open handles; and those of them that can write. */
  handles = 0;
  writers = 0;
  /** Milliseconds since the epoch. */
  modifiedMs: number;
  /** Result of the last commit that failed. */
  failure: { readonly revision: number; readonly error: FileError } | undefined;
  #revision = 0;
  #savedRevision = 0;

  constructor(
    buffer: FileBuffer,
    place: Place,
    target: DraftTarget | undefined,
    base: DraftBase,
    nowMs: number,
  ) {
    this.buffer = buffer;
    this.place = place;
    this.target = target;
    this.base = base;
    this.modifiedMs = nowMs;
  }

  get size(): number {
    return this.buffer.size;
  }

  /** Counts changes of the bytes. */
  get revision(): number {
    return this.#revision;
  }

  /** The bytes were changed since they were stored. */
  get isUnsaved(): boolean {
    return this.#revision !== this.#savedRevision;
  }

  /** The bytes of now were refused. */
  get isRefused(): boolean {
    return this.failure?.revision === this.#revision;
  }

  changed(nowMs: number): void {
    this.#revision++;
    this.modifiedMs = nowMs;
  }

  saved(revision: number, base: DraftBase): void {
    this.#savedRevision = revision;
    this.base = base;
    this.failure = undefined;
  }
}

/** Path of a place, without a slash at either end. */
export function pathOfPlace({ directory, name }: Place): string {
  return directory === "" ? name : `${directory}/${name}`;
}
