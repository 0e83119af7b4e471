import { setImmediate as nextTurn } from "node:timers/promises";
import { BRAND } from "../../../brand.ts";
import { AgentError, publicMessage } from "../../../errors.ts";
import type { MountSettings } from "../channel/messages.ts";
import { FuseDevice } from "../device/fuse-device.ts";
import { mountAt, readMounts } from "../device/mountinfo.ts";
import { findMounter, type Mounter } from "../device/mounter.ts";
import { prepareMountpoint, resolveMountpoint } from "../device/mountpoint.ts";
import { Poller } from "../device/poller.ts";
import { MAX_WRITE_BYTES } from "../tree/file-system.ts";
import { ChannelEnd } from "./channel-end.ts";
import { MountServer } from "./mount-server.ts";

/** Longest wait for the settings, in milliseconds. The end of the daemon ends it, too. */
const SETTINGS_WAIT_MS = 3_600_000;

/**
 * Serves the mount in this process, until it is unmounted or the daemon ends.
 *
 * One thread waits in ppoll(2) for the kernel and the daemon, and answers without waiting for anything else. So a stall of the
 * daemon never delays what is in memory here.
 *
 * @param descriptor of the channel to the daemon
 */
export async function runMountServer(descriptor: number): Promise<void> {
  const channel = new ChannelEnd(descriptor);
  const settings = await firstSettings(channel);
  if (settings === undefined) return;
  let path: string;
  let device: FuseDevice;
  const mounter = await findMounter(settings.helper);
  try {
    path = await resolveMountpoint(settings.mountpoint);
    await prepareMountpoint(path);
    const options = { source: BRAND.folder, subtype: BRAND.command, maxReadBytes: MAX_WRITE_BYTES };
    device = new FuseDevice(await mounter.mount(path, options), MAX_WRITE_BYTES);
  } catch (error) {
    const hint = error instanceof AgentError ? error.hint : undefined;
    const isFinal = error instanceof AgentError && error.code === "mount_refused";
    channel.send({
      kind: "refused",
      message: error instanceof AgentError ? error.message : publicMessage(error),
      hint,
      isFinal,
    });
    return;
  }
  const own = mountAt(await readMounts(), path)?.device;
  const isUnmounted = await new MountServer(channel, device, settings).run();
  device[Symbol.dispose]();
  if (isUnmounted) channel.send({ kind: "unmounted" });
  // The daemon has ended, so this process cleans up after it. The next daemon may have mounted there already.
  else await removeFrom(path, own, mounter);
}

/** Removes the mounts of a device at a path, which may be in use. */
async function removeFrom(path: string, device: string | undefined, mounter: Mounter): Promise<void> {
  if (device === undefined) return;
  try {
    while (mountAt(await readMounts(), path)?.device === device) await mounter.unmount(path, { lazy: true });
  } catch {
    // The next daemon removes it.
  }
}

async function firstSettings(channel: ChannelEnd): Promise<MountSettings | undefined> {
  const poller = new Poller([channel.descriptor]);
  for (;;) {
    poller.wait(SETTINGS_WAIT_MS);
    const messages = channel.receive();
    if (messages === undefined) return undefined;
    for (const message of messages) if (message.kind === "settings") return message.settings;
    await nextTurn();
  }
}
