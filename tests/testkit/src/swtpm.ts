import { createConnection } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { startPeer } from "./peer.ts";
import { tempFolder } from "./temp-folder.ts";

/** A software TPM 2.0 behind a Unix socket. */
export interface Swtpm {
  readonly socket: string;
  /** Extends a register of the SHA-256 bank, as other software at the start of the host would. */
  extend(pcr: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startSwtpm(): Promise<Swtpm> {
  const folder = await tempFolder("swtpm");
  const socket = join(folder.path, "socket");
  const peer = await startPeer("swtpm", async () => ({
    command: "swtpm",
    args: [
      "socket",
      "--tpm2",
      "--tpmstate",
      `dir=${folder.path}`,
      "--server",
      `type=unixio,path=${socket}`,
      "--flags",
      "not-need-init,startup-clear",
    ],
    isReady: () => connects(socket),
  }));
  return {
    socket,
    async extend(pcr) {
      // TPM2_PCR_Extend with an empty password and one SHA-256 digest.
      const command = Buffer.from(
        `80020000004100000182${hex(pcr)}0000000940000009000000000000000001000b${"ab".repeat(32)}`,
        "hex",
      );
      command.writeUInt32BE(command.length, 2);
      const connection = createConnection(socket);
      connection.write(command);
      const [answer] = (await once(connection, "data")) as [Buffer];
      connection.destroy();
      if (answer.readUInt32BE(6) !== 0)
        throw new Error(`swtpm refused with 0x${answer.readUInt32BE(6).toString(16)}`);
    },
    async stop() {
      await peer.stop();
      await folder.remove();
    },
  };
}

function hex(handle: number): string {
  return handle.toString(16).padStart(8, "0");
}

function connects(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = createConnection(path);
  socket.once("connect", () => resolve(true));
  socket.once("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}
