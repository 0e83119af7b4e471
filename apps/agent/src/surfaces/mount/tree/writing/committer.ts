import { constants } from "node:os";
import type { Fields } from "@devplat/secret-store";
import { printJson } from "@devplat/secret-store/json";
import type { Contents, Requests } from "../contents.ts";
import type { ReadVersions } from "../read-versions.ts";
import { FileError, StoreFault } from "../file-error.ts";
import type { SecretContent } from "../secret-content.ts";
import { documentBytes, fieldBytes } from "../../../../secrets/secret-bytes.ts";
import type { Draft, DraftBase } from "./draft.ts";
import type { KeptCopies } from "./kept-copies.ts";
import type { Overlay } from "./overlay.ts";
import { isFinal } from "./refusals.ts";
import { fieldsOf, fieldValueOf } from "./typed-text.ts";

/** Tries of a change of one field, while other fields of its secret change. */
const MAX_TRIES = 5;

export interface CommitterParts {
  readonly requests: Requests;
  readonly contents: Contents;
  readonly overlay: Overlay;
  readonly copies: KeptCopies;
  readonly readVersions: ReadVersions;
  /** Called when the list of files that are not stored may have changed. */
  readonly onChange: () => void;
}

/** Stores the bytes of drafts. */
export class Committer {
  readonly #parts: CommitterParts;

  constructor(parts: CommitterParts) {
    this.#parts = parts;
  }

  /**
   * Stores the bytes as they are now, if they were changed since they were stored.
   * @returns when the store has them, and has refused nothing. The kernel may still know the name of the old version
   * @throws FileError; StoreFault. A copy of the bytes is kept
   */
  commit(draft: Draft): Promise<void> {
    return draft.turns.run(async () => {
      if (!draft.isUnsaved || draft.target === undefined) return;
      if (draft.failure !== undefined && draft.isRefused && isFinal(draft.failure.error))
        throw draft.failure.error;
      const { revision } = draft;
      const bytes = draft.buffer.copy();
      try {
        const { base } = draft;
        const stored = await this.#store(draft, bytes);
        draft.saved(revision, stored);
        this.#stored(draft, stored !== base);
      } catch (error) {
        const failure = error instanceof FileError ? error : new FileError("EIO");
        draft.failure = { revision, error: failure };
        // A new file keeps its name until it is closed.
        if (!draft.isNamed) this.#parts.copies.keep(draft, bytes, failure);
        this.#parts.onChange();
        throw error;
      }
    });
  }

  /** Stores bytes in place of what a file has. @throws FileError; StoreFault */
  async #store({ target, base }: Draft, bytes: Buffer): Promise<DraftBase> {
    if (target?.kind === "field") return await this.#storeField(target.path, target.field, base, bytes);
    return await this.#storeDocument(target?.path ?? "", base, bytes);
  }

  async #storeDocument(path: string, base: DraftBase, bytes: Buffer): Promise<DraftBase> {
    const fields = fieldsOf(bytes);
    // An editor that could not save writes the old text again. That is not a new version.
    if (base.bytes?.equals(bytes) === true && (await this.#current(path))?.version === base.version)
      return base;
    try {
      const version = await this.write(path, printJson(fields), base.version);
      return { version, bytes };
    } catch (error) {
      // The response to an earlier try of the same text may have been lost.
      if (isConflict(error)) {
        const now = await this.#current(path);
        if (now !== undefined && now.document.equals(documentBytes(fields)))
          return { version: now.version, bytes };
      }
      throw error;
    }
  }

  /** Other fields may change at the same time. This one must be as it was. */
  async #storeField(path: string, field: string, base: DraftBase, bytes: Buffer): Promise<DraftBase> {
    const version = await this.changeFields(path, ({ fields }) => {
      const value = fields.get(field);
      const before = value === undefined ? undefined : fieldBytes(value);
      // The response to an earlier try may have been lost.
      if (equal(before, bytes)) return undefined;
      if (!equal(before, base.bytes)) throw new FileError("ESTALE");
      return new Map([...fields, [field, fieldValueOf(value, bytes)]]);
    });
    return { version, bytes };
  }

  /**
   * Changes fields of a secret as they are now, again if somebody else changes it at the same time.
   * @param change returns undefined if there is nothing to change
   * @returns the version
   * @throws FileError; StoreFault; errors of the change
   */
  async changeFields(path: string, change: (now: SecretContent) => Fields | undefined): Promise<number> {
    for (let tries = 1; ; tries++) {
      const now = await this.#current(path);
      if (now === undefined) throw new FileError("ENOENT");
      const fields = change(now);
      if (fields === undefined) return now.version;
      try {
        return await this.write(path, printJson(fields), now.version);
      } catch (error) {
        if (!isConflict(error) || tries === MAX_TRIES) throw error;
      }
    }
  }

  /**
   * Writes a document.
   * @param fields a JSON object
   * @returns its version
   * @throws StoreFault; FileError
   */
  async write(path: string, fields: string, ifVersion: number): Promise<number> {
    const { requests, contents, readVersions } = this.#parts;
    try {
      const { version } = await requests.request({ kind: "write", path, fields, ifVersion });
      readVersions.stored(path, ifVersion, version);
      return version;
    } catch (error) {
      if (isConflict(error)) readVersions.forget(path);
      throw error;
    } finally {
      contents.drop(path);
    }
  }

  /** Removes a secret with all versions. @throws StoreFault; FileError */
  async delete(path: string): Promise<void> {
    const { requests, contents, readVersions } = this.#parts;
    try {
      await requests.request({ kind: "delete", path });
      readVersions.forget(path);
    } finally {
      contents.drop(path);
    }
  }

  async #current(path: string): Promise<SecretContent | undefined> {
    try {
      return (await this.#parts.contents.renewed(path)).value;
    } catch (error) {
      if (error instanceof StoreFault && error.code === "not_found") return undefined;
      throw error;
    }
  }

  #stored(draft: Draft, isChanged: boolean): void {
    const { overlay, copies, onChange } = this.#parts;
    if (draft.isNamed) overlay.remove(draft);
    overlay.show(draft.place);
    if (draft.target !== undefined) overlay.dropFoldersAbove(draft.target.path);
    if (isChanged) copies.dropRejected(draft.place);
    onChange();
  }
}

/** Whether the secret is not the one that the change is for. */
export function isConflict(error: unknown): boolean {
  return error instanceof FileError && error.errno === constants.errno.ESTALE;
}

function equal(one: Buffer | undefined, other: Buffer | undefined): boolean {
  return one === undefined || other === undefined ? one === other : one.equals(other);
}
