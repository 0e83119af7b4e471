import type { Logger } from "@devplat/base";
import { SecretStoreError, parseFields, printJson } from "@devplat/secret-store";
import type { CachedSecrets } from "../../secrets/folder/cached-secrets.ts";
import { AgentError } from "../../errors.ts";
import type { SecretEditor } from "../../secrets/secret-editor.ts";
import type { MountFaultCode, MountReplies, MountReply, MountRequest } from "./channel/messages.ts";

/** The rules' files on the mount. */
export interface RenderedFiles {
  /** Whether a file may be made from a secret. `""`: any secret. */
  dependOn(secret: string): boolean;
  /**
   * The content of a file; undefined while its rule has none.
   * @throws SecretStoreError; AgentError, whose reason is logged; the reason of the signal
   */
  render(path: string, signal: AbortSignal): Promise<MountReplies["render"] | undefined>;
}

export interface MountRequestsParts {
  readonly secrets: CachedSecrets;
  readonly editor: Pick<SecretEditor, "replace" | "remove">;
  /** Whether an enrolment owns a secret. */
  readonly isOwned: (path: string) => boolean;
  /** `fuse.read_write` of this mount. */
  readonly mayWrite: boolean;
  readonly rendered: RenderedFiles;
  readonly logger: Logger;
}

/** A request that is not done. */
export class MountFault extends Error {
  readonly code: MountFaultCode;

  constructor(code: MountFaultCode) {
    super(code);
    this.code = code;
  }
}

/** Does for the mount server what only the daemon can: it asks and changes the store. */
export class MountRequests {
  readonly #parts: MountRequestsParts;

  constructor(parts: MountRequestsParts) {
    this.#parts = parts;
  }

  /** @param signal fires when nobody waits for the response. A write that has begun is completed. @throws MountFault */
  async answer(request: MountRequest, signal: AbortSignal): Promise<MountReply> {
    try {
      return await this.#answer(request, signal);
    } catch (error) {
      if (error instanceof MountFault) throw error;
      if (error instanceof SecretStoreError) throw new MountFault(error.code);
      if (!signal.aborted && !(error instanceof AgentError))
        this.#parts.logger.warn({ err: error, kind: request.kind }, "a request of the mount failed");
      throw new MountFault("failed");
    }
  }

  async #answer(request: MountRequest, signal: AbortSignal): Promise<MountReply> {
    const { secrets, editor, rendered } = this.#parts;
    switch (request.kind) {
      case "list":
        return await secrets.list(request.folder, signal);
      case "read": {
        const { version, createdAt, fields } = await secrets.read(request.path, signal);
        return { version, createdAt, fields: printJson(fields) };
      }
      case "write": {
        this.#checkWritable(request.path);
        const fields = parseFields(request.fields);
        return { version: await editor.replace(request.path, fields, request.ifVersion, "mount") };
      }
      case "delete":
        this.#checkWritable(request.path);
        await editor.remove(request.path, "mount");
        return null;
      default: {
        const content = await rendered.render(request.path, signal);
        if (content === undefined) throw new MountFault("not_rendered");
        return content;
      }
    }
  }

  /** Whether a rendered file may be another one after a change of a secret. `""`: of any secret. */
  rendersFrom(secret: string): boolean {
    return this.#parts.rendered.dependOn(secret);
  }

  #checkWritable(path: string): void {
    if (!this.#parts.mayWrite) throw new MountFault("denied");
    if (this.#parts.isOwned(path)) throw new MountFault("owned");
  }
}
