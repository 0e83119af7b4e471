import { Secret, syncFolder, systemCode, writeAtomically } from "@devplat/base";
import { constants } from "node:fs";
import { open, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { BRAND } from "../../brand.ts";
import { AgentError } from "../../errors.ts";
import { fileSignature, signatureOf } from "../../agent-files/file-signature.ts";

/** No store makes tokens of this size, sealed or not; a larger file is something else. In bytes. */
const MAX_TOKEN_BYTES = 16 * 1024;

/** Begin of a sealed token, so that it is never taken for a token and sent to a server. */
export const SEAL_MARKER = `$${BRAND.folder}-tpm-sealed$v1$`;

/** Turns a secret into a text that only this host can turn back. */
export interface Sealer {
  /** Gives a text that starts with {@link SEAL_MARKER}. */
  seal(plain: Secret): Promise<string>;
  /** @throws AgentError `seal_failed` */
  unseal(sealed: string): Promise<Secret>;
}

/** The file that keeps the token between runs: 0600, of this user, replaced atomically, sealed where a sealer is given. */
export class TokenFile {
  readonly path: string;
  readonly #sealer: Sealer | undefined;

  constructor(path: string, sealer?: Sealer) {
    this.path = path;
    this.#sealer = sealer;
  }

  /**
   * Its token, or undefined if there is no file or it is empty.
   * @throws AgentError `token_file_refused` unless it is a regular file of this user that no other user can read or
   *   write; `seal_failed`
   */
  async read(): Promise<Secret | undefined> {
    const text = await readOwnFile(this.path);
    if (text === "") return undefined;
    if (!text.startsWith(SEAL_MARKER)) return new Secret(text);
    if (this.#sealer !== undefined) return this.#sealer.unseal(text);
    throw refused(
      this.path,
      "it is sealed to this host's TPM",
      "Set store.auth_method to a method with +tpm.",
    );
  }

  /** @returns the {@link signature} of exactly what was written */
  async write(token: Secret): Promise<string> {
    const text = this.#sealer === undefined ? token.reveal() : await this.#sealer.seal(token);
    try {
      return signatureOf(await writeAtomically(this.path, `${text}\n`));
    } catch (error) {
      throw new AgentError(
        "token_file_refused",
        `cannot write the token file ${this.path} (${systemCode(error) ?? "unknown error"})`,
        { hint: "Check who owns its folder and whether the disk is full or read-only." },
      );
    }
  }

  /** Gives whether there was one. */
  async remove(): Promise<boolean> {
    try {
      await unlink(this.path);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return false;
      throw new AgentError(
        "token_file_refused",
        `cannot remove the token file ${this.path} (${systemCode(error) ?? "unknown error"})`,
      );
    }
    await syncFolder(dirname(this.path));
    return true;
  }

  /** Changes whenever the file does. */
  signature(): Promise<string | undefined> {
    return fileSignature(this.path);
  }
}

async function readOwnFile(path: string): Promise<string> {
  try {
    const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw refused(path, "it is not a regular file");
      if (process.platform !== "win32") {
        if (found.uid !== process.geteuid?.()) throw refused(path, "it belongs to another user");
        if ((found.mode & 0o077) !== 0) {
          throw refused(path, "others can read or write it", `Run 'chmod 600 ${path}', and get a new token.`);
        }
      }
      if (found.size > MAX_TOKEN_BYTES) throw refused(path, "it is too large for a token");
      return (await handle.readFile("utf8")).trim();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof AgentError) throw error;
    if (systemCode(error) === "ENOENT") return "";
    throw refused(path, `it cannot be read (${systemCode(error) ?? "unknown error"})`);
  }
}

function refused(path: string, reason: string, hint?: string): AgentError {
  return new AgentError(
    "token_file_refused",
    `refused the token file ${path}: ${reason}`,
    hint === undefined ? {} : { hint },
  );
}
