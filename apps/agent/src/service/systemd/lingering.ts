import { userInfo } from "node:os";
import { join } from "node:path";
import { exists } from "@devplat/base";
import { BRAND } from "../../brand.ts";

/** Folder with a file for each user whose services run without a login (logind.conf(5), `loginctl enable-linger`). */
const LINGER_VARIABLE = `${BRAND.environmentPrefix}_LINGER_FOLDER`;
const LINGER_FOLDER = "/var/lib/systemd/linger";

/** Whether services of this user run without a login. Otherwise they end with the last session, and their runtime folder goes. */
export async function readLingering(
  environment: NodeJS.ProcessEnv,
): Promise<{ readonly username: string; readonly lingers: boolean }> {
  const { username } = userInfo();
  return { username, lingers: await exists(join(environment[LINGER_VARIABLE] || LINGER_FOLDER, username)) };
}
