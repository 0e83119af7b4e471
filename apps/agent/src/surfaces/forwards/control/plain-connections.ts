import { configurationOf, type ConfigurationParts } from "../connection-files.ts";
import type { RemoteEntry } from "../file/remote-entry.ts";
import type { OpenConnection } from "../forward.ts";
import type { ControlFolder } from "../openssh/control-folder.ts";
import { ConnectionError, type Failure } from "../openssh/failure.ts";
import { tryLogin, type PlainLoginParts } from "../openssh/plain-login.ts";

/** Failure of every forward on Windows. */
const NO_FORWARDS: Failure = {
  class: "local",
  message: "OpenSSH on Windows has neither control sockets nor forwards of Unix sockets",
  waitLong: true,
  unsupported: true,
};

export interface PlainConnectionsParts extends ConfigurationParts, PlainLoginParts {
  readonly folder: ControlFolder;
}

/**
 * Connections of a system whose OpenSSH cannot keep a forward up (Windows). A remote is dialled once when it is added, and
 * stays offline.
 */
export class PlainConnections {
  readonly #parts: PlainConnectionsParts;
  readonly #checkVersion: () => Promise<void>;

  /** @param checkVersion throws ForwardError `ssh_unusable` */
  constructor(parts: PlainConnectionsParts, checkVersion: () => Promise<void>) {
    this.#parts = parts;
    this.#checkVersion = checkVersion;
  }

  readonly open: OpenConnection = () => Promise.reject(new ConnectionError(NO_FORWARDS));

  /** Checks host keys and the login. @throws ConnectionError | ForwardError | AgentError */
  async dial(entry: RemoteEntry, signal: AbortSignal): Promise<{ close(): Promise<void> }> {
    const { folder } = this.#parts;
    await this.#checkVersion();
    await folder.prepare();
    const paths = folder.paths(entry.host);
    try {
      await tryLogin(this.#parts, paths, await configurationOf(this.#parts, paths, entry), signal);
    } finally {
      await folder.discard(paths);
    }
    return { close: async () => undefined };
  }
}
