import { Secret, systemCode } from "@devplat/base";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { AgentError } from "../errors.ts";

/** No store makes tokens of this size; a larger file is something else. In bytes. */
const MAX_TOKEN_BYTES = 16 * 1024;

/**
 * Reads the token file, or gives undefined if there is none or it is empty.
 * @throws AgentError `token_file_refused` unless it is a regular file of this user that nobody else can read or write
 */
export async function readTokenFile(path: string): Promise<Secret | undefined> {
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
      const token = (await handle.readFile("utf8")).trim();
      return token === "" ? undefined : new Secret(token);
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof AgentError) throw error;
    if (systemCode(error) === "ENOENT") return undefined;
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
