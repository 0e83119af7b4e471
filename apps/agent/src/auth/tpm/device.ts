import { open } from "node:fs/promises";
import { createConnection } from "node:net";
import { once } from "node:events";
import { systemCode } from "@devplat/base";
import { AgentError } from "../../errors.ts";

/** The kernel's device with a resource manager: what one process loads cannot push out what another has loaded. */
const DEFAULT_DEVICE = "/dev/tpmrm0";
/** Names another device, or a software TPM's socket as `unix:/path`. */
const DEVICE_VARIABLE = "AGENT_TPM_DEVICE";
/** Largest response (TPM 2.0 part 4, a usual implementation), in bytes. */
const MAX_RESPONSE_BYTES = 4096;
/** A TPM takes tenths of a second for the slowest of our commands. In milliseconds. */
const TIMEOUT_MS = 10_000;

/** Carries one command to a TPM and its response back. */
export type TpmDevice = (command: Buffer) => Promise<Buffer>;

/** The TPM of this host. Nothing is opened until the first command. */
export function tpmDevice(environment: NodeJS.ProcessEnv): TpmDevice {
  const path = environment[DEVICE_VARIABLE] || DEFAULT_DEVICE;
  return async (command) => {
    try {
      return path.startsWith("unix:") ? await bySocket(path.slice(5), command) : await byFile(path, command);
    } catch (error) {
      throw new AgentError(
        "seal_failed",
        `cannot use the TPM at ${path} (${systemCode(error) ?? "no answer"})`,
        {
          cause: error,
          hint: "Check that this host has a TPM 2.0, and that this user is in the group of its device (often tss).",
        },
      );
    }
  };
}

async function byFile(path: string, command: Buffer): Promise<Buffer> {
  const handle = await open(path, "r+");
  try {
    await handle.write(command);
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(MAX_RESPONSE_BYTES));
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function bySocket(path: string, command: Buffer): Promise<Buffer> {
  const socket = createConnection(path);
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error("no answer in time")));
  try {
    await once(socket, "connect");
    socket.write(command);
    let response = Buffer.alloc(0);
    for await (const chunk of socket) {
      response = Buffer.concat([response, chunk as Buffer]);
      // The size follows the two bytes of the tag.
      if (response.length >= 6 && response.length >= response.readUInt32BE(2)) return response;
    }
    throw new Error("the answer was cut");
  } finally {
    socket.destroy();
  }
}
