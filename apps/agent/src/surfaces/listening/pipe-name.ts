import { createHash } from "node:crypto";
import { BRAND } from "../../brand.ts";

/** All named pipes of a host are in this one folder. */
export const PIPES = "\\\\.\\pipe\\";
/** Characters of the hash in a name. Folders of one host never agree in them by chance. */
const HASH_CHARS = 16;

export function isPipeName(address: string): boolean {
  return address.startsWith(PIPES);
}

/**
 * Name of the pipe that takes the place of a socket in a folder. Users and runtime folders have different names, because all
 * pipes of a host share one folder. The hash does not show the user's name to other users.
 *
 * @param folder the user's runtime folder, in the form that the system gives
 */
export function pipeName(folder: string, socket: string): string {
  const hash = createHash("sha256").update(folder.toLowerCase()).digest("hex").slice(0, HASH_CHARS);
  return `${PIPES}${BRAND.folder}-${hash}-${socket.replace(/\.sock$/, "")}`;
}
