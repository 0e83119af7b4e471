import { systemCode } from "@devplat/base";
import { ConfigError } from "@devplat/config";
import { MAX_CONFIG_BYTES } from "@devplat/config/document";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { AgentError } from "../errors.ts";

export interface ConfigFile {
  readonly path: string;
  readonly text: string;
  /** Its group can write it: allowed, but worth a warning. */
  readonly groupWritable: boolean;
  /** Owned by root and writable by nobody else: only such a file may loosen a rule for everybody on the host. */
  readonly trusted: boolean;
}

/**
 * Reads a configuration file, or gives undefined if there is none.
 *
 * @throws AgentError `config_refused` if a user other than root and this one can write it: the writer of the
 *   configuration says which files are written and which commands run
 * @throws ConfigError `config_unreadable`
 */
export async function readConfigFile(path: string): Promise<ConfigFile | undefined> {
  try {
    // Without O_NONBLOCK a FIFO in place of the file would block without end.
    const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw unreadable(path, "not a regular file");
      if (found.size > MAX_CONFIG_BYTES) throw unreadable(path, `larger than ${MAX_CONFIG_BYTES} bytes`);
      const groupWritable = process.platform !== "win32" && (found.mode & 0o020) !== 0;
      if (process.platform !== "win32") refuseForeign(path, found.uid, found.mode);
      const bytes = await handle.readFile();
      const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
      return { path, text, groupWritable, trusted: found.uid === 0 && (found.mode & 0o022) === 0 };
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof AgentError || error instanceof ConfigError) throw error;
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") throw unreadable(path, "not UTF-8 text");
    throw unreadable(path, `cannot be read (${code ?? "unknown error"})`);
  }
}

function refuseForeign(path: string, uid: number, mode: number): void {
  if ((mode & 0o002) !== 0) {
    throw new AgentError("config_refused", `refused the configuration ${path}: everybody can write it`, {
      hint: `Run 'chmod o-w ${path}', and check what it holds.`,
    });
  }
  if (uid !== 0 && uid !== process.geteuid?.()) {
    throw new AgentError("config_refused", `refused the configuration ${path}: it belongs to another user`, {
      hint: "A configuration must belong to you or to root.",
    });
  }
}

function unreadable(path: string, message: string): ConfigError {
  return new ConfigError("config_unreadable", [{ source: path, line: 0, column: 0, key: "", message }]);
}
