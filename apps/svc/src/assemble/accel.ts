import { systemCode, type Logger } from "@devplat/base";
import { HANDED_FOLDER } from "../cache/responses/response-folders.ts";
import type { Config } from "../config/schema.ts";
import { SvcError } from "../errors.ts";
import { Accel } from "../http/accel/accel.ts";
import { groupIdOf } from "../http/accel/group-id.ts";
import { HandedFiles } from "../http/accel/handed-files.ts";

/**
 * The part that hands stored responses to the proxy in front (`server.accel`).
 *
 * @returns undefined if it is not configured
 * @throws SvcError `config_refused`: the group is not known, or the folder cannot be given to it
 */
export async function assembleAccel(
  { server, cache }: Config,
  storagePath: string,
  logger: Logger,
): Promise<Accel | undefined> {
  const { accel_secret: secret } = server;
  if (server.accel === undefined || secret === undefined || !cache.enabled) return undefined;
  const group = cache.accel_group;
  const groupId = group === undefined ? undefined : await groupIdOf(group);
  if (group !== undefined && groupId === undefined) {
    throw new SvcError("config_refused", `cache.accel_group: there is no group "${group}" on this machine`);
  }
  const files = new HandedFiles({ storagePath, folderName: HANDED_FOLDER, groupId, logger });
  try {
    await files.prepare();
  } catch (error) {
    const reason = systemCode(error) ?? "unknown";
    const advice =
      reason === "EPERM" ? `: make the user of this service a member of the group "${group}"` : "";
    throw new SvcError(
      "config_refused",
      `the folder for server.accel in ${storagePath} cannot be prepared (${reason})${advice}`,
      { cause: error },
    );
  }
  return new Accel({ secret, files, logger });
}
