import { readFile } from "node:fs/promises";
import { mount, type MountOptions } from "./mount.ts";
import { mountByHelper, unmountByHelper } from "./mount-helper.ts";
import { unmount, type Unmounting } from "./unmount.ts";

/** Mounts and unmounts, as `mount` and `unmount` do. */
export interface Mounter extends Unmounting {
  mount(path: string, options: MountOptions): Promise<number>;
}

/**
 * The way to mount for this process: itself, or the mount helper if the system gives this process no new privileges, which
 * the setuid program `fusermount3` needs.
 *
 * @param helper path of the helper's socket
 */
export async function findMounter(helper: string): Promise<Mounter> {
  if (!(await needsHelper())) return { mount, unmount };
  return {
    mount: async (path, options) => mountByHelper(helper, path, options),
    unmount: (path, options) => unmountByHelper(helper, path, options),
  };
}

/** Whether this process cannot run `fusermount3`. Root needs none. */
export async function needsHelper(): Promise<boolean> {
  if (process.geteuid?.() === 0) return false;
  const status = await readFile("/proc/self/status", "latin1").catch(() => "");
  return /^NoNewPrivs:\s*1$/m.test(status);
}
