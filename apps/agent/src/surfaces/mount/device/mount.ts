import { closeSync, constants, openSync, statSync } from "node:fs";
import { systemCode } from "@devplat/base";
import { AgentError } from "../../../errors.ts";
import { receiveMessage, socketPair } from "./descriptor-passing.ts";
import { runFusermount } from "./fusermount.ts";
import { lastErrorName, systemCalls } from "./system-calls.ts";

const DEVICE = "/dev/fuse";
const MS_NOSUID = 2n;
const MS_NODEV = 4n;
const MS_NOEXEC = 8n;
/** `fusermount3` has sent the descriptor before it ends. In milliseconds. */
const DESCRIPTOR_LIMIT_MS = 1000;

/** Options of a mount. It is always nosuid, nodev and noexec, and only the mounting user has access. */
export interface MountOptions {
  /** Source in the mount table (`fsname`). Without comma and backslash. */
  readonly source: string;
  /** The type in the mount table is `fuse.<subtype>`. Without comma and backslash. */
  readonly subtype: string;
  /** Maximum bytes of one READ. */
  readonly maxReadBytes: number;
}

/**
 * Mounts at a prepared folder: root by mount(2), other users by `fusermount3`. The kernel checks the permissions of each node
 * (`default_permissions`).
 *
 * @param path from `resolveMountpoint`, checked by `prepareMountpoint`
 * @returns descriptor of the device, which no child inherits. The caller must close it
 * @throws AgentError `mount_failed`
 */
export async function mount(path: string, options: MountOptions): Promise<number> {
  if (process.geteuid?.() === 0) return mountAsRoot(path, options);
  const [own, other] = socketPair();
  try {
    const words = [
      `fsname=${options.source}`,
      `subtype=${options.subtype}`,
      "nosuid,nodev,noexec,default_permissions",
      `max_read=${options.maxReadBytes}`,
    ];
    await runFusermount(["-o", words.join(",")], path, other);
    const { descriptor } = receiveMessage(own, DESCRIPTOR_LIMIT_MS);
    if (descriptor === undefined)
      throw new AgentError("mount_failed", `cannot mount at ${path}: fusermount3 sent no device`);
    return descriptor;
  } finally {
    closeSync(own);
    closeSync(other);
  }
}

function mountAsRoot(path: string, options: MountOptions): number {
  const descriptor = openDevice(path);
  const { mode } = statSync(path);
  const data = [
    `fd=${descriptor}`,
    `rootmode=${(mode & constants.S_IFMT).toString(8)}`,
    `user_id=${process.geteuid?.()}`,
    `group_id=${process.getegid?.()}`,
    "default_permissions",
    `max_read=${options.maxReadBytes}`,
  ].join(",");
  const flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (systemCalls().mount(options.source, path, `fuse.${options.subtype}`, flags, data) === 0)
    return descriptor;
  const reason = lastErrorName();
  closeSync(descriptor);
  throw new AgentError("mount_failed", `cannot mount at ${path}: ${reason}`);
}

function openDevice(path: string): number {
  try {
    return openSync(DEVICE, constants.O_RDWR);
  } catch (error) {
    throw new AgentError(
      "mount_failed",
      `cannot mount at ${path}: ${DEVICE} cannot be opened (${systemCode(error)})`,
      {
        hint: "Load the kernel module: modprobe fuse.",
      },
    );
  }
}
