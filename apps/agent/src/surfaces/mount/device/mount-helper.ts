import { closeSync } from "node:fs";
import { createConnection } from "node:net";
import { once } from "node:events";
import { messageOf } from "@devplat/base";
import { AgentError } from "../../../errors.ts";
import { connectSocket, receiveMessage, sendMessage } from "./descriptor-passing.ts";
import type { MountOptions } from "./mount.ts";
import type { UnmountOptions } from "./unmount.ts";

/** Longer than `fusermount3` may take. In milliseconds. */
const ANSWER_LIMIT_MS = 15_000;
/** The helper's answer to a request that is done. Each other answer is a text for people. */
export const DONE = "ok";

/** One request on each connection: one line of JSON. The answer to `mount` has the device with it. */
export type HelperRequest =
  | { readonly action: "mount"; readonly path: string; readonly maxReadBytes: number }
  | { readonly action: "unmount"; readonly path: string; readonly lazy: boolean };

/**
 * Has the mount helper mount. Blocks the thread.
 *
 * @param helper path of its socket
 * @returns as `mount`
 * @throws AgentError `mount_failed`
 */
export function mountByHelper(helper: string, path: string, { maxReadBytes }: MountOptions): number {
  let socket: number;
  try {
    socket = connectSocket(helper);
  } catch (error) {
    throw unreachable(path, messageOf(error));
  }
  try {
    const request: HelperRequest = { action: "mount", path, maxReadBytes };
    sendMessage(socket, `${JSON.stringify(request)}\n`);
    const { text, descriptor } = receiveMessage(socket, ANSWER_LIMIT_MS);
    if (text === DONE && descriptor !== undefined) return descriptor;
    if (descriptor !== undefined) closeSync(descriptor);
    throw refused(path, text);
  } finally {
    closeSync(socket);
  }
}

/** Has the mount helper unmount. @throws AgentError `mount_failed` */
export async function unmountByHelper(helper: string, path: string, { lazy }: UnmountOptions): Promise<void> {
  const socket = createConnection(helper);
  try {
    await once(socket, "connect");
  } catch (error) {
    throw unreachable(path, messageOf(error));
  }
  try {
    const request: HelperRequest = { action: "unmount", path, lazy };
    socket.setTimeout(ANSWER_LIMIT_MS, () =>
      socket.destroy(refused(path, "the mount helper does not answer")),
    );
    socket.write(`${JSON.stringify(request)}\n`);
    let text = "";
    for await (const chunk of socket.setEncoding("utf8") as AsyncIterable<string>) text += chunk;
    if (text !== DONE) throw refused(path, text);
  } catch (error) {
    throw error instanceof AgentError ? error : refused(path, messageOf(error));
  } finally {
    socket.destroy();
  }
}

function refused(path: string, text: string): AgentError {
  const message = text === "" || text === DONE ? `the mount helper refused to serve ${path}` : text;
  return new AgentError("mount_failed", message);
}

function unreachable(path: string, reason: string): AgentError {
  return new AgentError(
    "mount_failed",
    `cannot mount or unmount ${path}: this process may not get new privileges, so it cannot run fusermount3, and the mount helper does not answer (${reason})`,
    { hint: "Start agent-mount.socket, or run the daemon without NoNewPrivileges." },
  );
}
