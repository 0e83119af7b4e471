import { isDeepStrictEqual } from "node:util";
import type { RemoteEntry } from "../file/remote-entry.ts";
import type { OpenConnection } from "../forward.ts";

type Connection = Awaited<ReturnType<OpenConnection>>;

interface Trial {
  readonly entry: RemoteEntry;
  readonly connection: Connection;
}

/**
 * Connections of remotes that are being added. The forward of an added remote takes the connection that was tried, because a
 * server without SFTP keeps the socket of a connection that has ended.
 */
export class TrialConnections {
  readonly #open: OpenConnection;
  readonly #trials = new Map<string, Trial>();

  constructor(open: OpenConnection) {
    this.#open = open;
  }

  /** Opens the connection of a forward. A trial connection of the same entry is used for it. */
  readonly open: OpenConnection = async (entry, former, signal) => {
    const trial = this.#take(entry.host);
    if (trial !== undefined) {
      if (isDeepStrictEqual(definedKeys(trial.entry), definedKeys(entry))) return trial.connection;
      await trial.connection.close();
    }
    return await this.#open(entry, former, signal);
  };

  /** Connects once. The caller must close the result, which does nothing after a forward has taken the connection. */
  async dial(entry: RemoteEntry, signal: AbortSignal): Promise<Pick<Connection, "close">> {
    const connection = await this.#open(entry, undefined, signal);
    const trial = { entry, connection };
    this.#trials.set(entry.host, trial);
    return {
      close: async () => {
        if (this.#trials.get(entry.host) === trial) await this.#take(entry.host)?.connection.close();
      },
    };
  }

  #take(host: string): Trial | undefined {
    const trial = this.#trials.get(host);
    this.#trials.delete(host);
    return trial;
  }
}

function definedKeys(entry: RemoteEntry): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined));
}
