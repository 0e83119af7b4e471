import { closeSync } from "node:fs";
import type { Server, Socket } from "node:net";
import { AgentError, publicMessage } from "../../../errors.ts";
import { descriptorOf } from "../../listening/socket-inode.ts";
import { connectSocket, receiveMessage, sendMessage } from "./descriptor-passing.ts";
import { mount, type MountOptions } from "./mount.ts";
import { unmount, type UnmountOptions } from "./unmount.ts";

/** Longest request, in characters. */
const MAX_REQUEST_CHARS = 8192;
/** Longer than `fusermount3` may take. In milliseconds. */
const ANSWER_LIMIT_MS = 15_000;
const SUCCESS = "ok";

/** One request on each connection: one line of JSON. The answer is `ok`, with the device of a mount, or a text for people. */
type HelperRequest =
  | { readonly action: "mount"; readonly path: string; readonly options: MountOptions }
  | { readonly action: "unmount"; readonly path: string; readonly options: UnmountOptions };

/**
 * Mounts and unmounts for a daemon whose service forbids new privileges, so that it cannot run `fusermount3` itself. Serves the
 * connections of a listening server. It gives nothing that a process of this user could not do.
 *
 * @param isAllowed whether the process at the other end is the daemon's
 */
export function serveMountHelper(server: Server, isAllowed: (socket: Socket) => boolean): void {
  server.on("connection", (socket: Socket) => {
    socket.on("error", () => socket.destroy());
    if (!isAllowed(socket)) {
      socket.destroy();
      return;
    }
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const end = text.indexOf("\n");
      if (end === -1 && text.length <= MAX_REQUEST_CHARS) return;
      socket.removeAllListeners("data");
      void answer(socket, text.slice(0, Math.max(end, 0)));
    });
  });
}

/**
 * Has the helper mount.
 *
 * @param helper path of its socket
 * @returns as `mount`
 * @throws AgentError `mount_failed`
 */
export function mountByHelper(helper: string, path: string, options: MountOptions): number {
  const descriptor = ask(helper, { action: "mount", path, options });
  if (descriptor === undefined)
    throw new AgentError("mount_failed", `cannot mount at ${path}: the mount helper sent no device`);
  return descriptor;
}

/** Has the helper unmount. @throws AgentError `mount_failed` */
export function unmountByHelper(helper: string, path: string, options: UnmountOptions): void {
  const descriptor = ask(helper, { action: "unmount", path, options });
  if (descriptor !== undefined) closeSync(descriptor);
}

function ask(helper: string, request: HelperRequest): number | undefined {
  const socket = connectSocket(helper);
  try {
    sendMessage(socket, `${JSON.stringify(request)}\n`);
    const { text, descriptor } = receiveMessage(socket, ANSWER_LIMIT_MS);
    if (text === SUCCESS) return descriptor;
    if (descriptor !== undefined) closeSync(descriptor);
    throw new AgentError("mount_failed", text === "" ? "the mount helper refused the request" : text);
  } finally {
    closeSync(socket);
  }
}

async function answer(socket: Socket, line: string): Promise<void> {
  let device: number | undefined;
  try {
    const request = parseRequest(line);
    if (request.action === "mount") device = await mount(request.path, request.options);
    else await unmount(request.path, request.options);
    const connection = descriptorOf(socket);
    // Node cannot send this kind of descriptor. Nothing else was written to the socket.
    if (connection !== undefined) sendMessage(connection, SUCCESS, device);
    socket.end();
  } catch (error) {
    socket.end(publicMessage(error));
  } finally {
    if (device !== undefined) closeSync(device);
  }
}

function parseRequest(line: string): HelperRequest {
  let request: Partial<Record<string, unknown>> = {};
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null) request = { ...value };
  } catch {
    // Refused below.
  }
  const { action, path, options } = request;
  if (typeof path === "string" && path.startsWith("/") && !path.includes("\0")) {
    const given: Partial<Record<string, unknown>> =
      typeof options === "object" && options !== null ? { ...options } : {};
    const { source, subtype, maxReadBytes, lazy } = given;
    if (action === "unmount" && typeof lazy === "boolean") return { action, path, options: { lazy } };
    if (action === "mount" && isWord(source) && isWord(subtype) && Number.isSafeInteger(maxReadBytes))
      return { action, path, options: { source, subtype, maxReadBytes: Number(maxReadBytes) } };
  }
  throw new AgentError("mount_failed", "the mount helper does not understand the request");
}

/** A word cannot add an option. */
function isWord(value: unknown): value is string {
  return typeof value === "string" && /^[\w-]+$/.test(value);
}
