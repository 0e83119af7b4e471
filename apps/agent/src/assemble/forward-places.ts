import { join } from "node:path";
import type { Places } from "../agent-files/places.ts";

/** Path of the file of managed SSH forwards. */
export function remotesPath({ configFolder }: Places): string {
  return join(configFolder, "ssh.yaml");
}

/** Folder of the connections' sockets and files. */
export function connectionsFolder({ runtime }: Places): string {
  return join(runtime, "ssh");
}

/** Path of the record of lent tokens. */
export function lentTokensPath({ state }: Places): string {
  return join(state, "lent-tokens");
}
