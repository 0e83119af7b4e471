import { join } from "node:path";
import { systemCode, type Logger } from "@devplat/base";
import { makePrivate } from "../cache/responses/private-files.ts";
import { HANDED_FOLDER } from "../cache/responses/response-folders.ts";
import type { Config } from "../config/schema.ts";
import { SvcError } from "../errors.ts";
import { AccelProbe } from "../http/accel/accel-probe.ts";
import { AccelRefusals } from "../http/accel/accel-refusals.ts";
import { Accel } from "../http/accel/accel.ts";
import { groupIdOf } from "../http/accel/group-id.ts";
import { HandedFiles } from "../http/accel/handed-files.ts";
import { HandedFolderRefused } from "../http/accel/handed-folder-refused.ts";
import type { Metrics } from "../telemetry/metrics.ts";

export interface AccelAssembly {
  readonly accel: Accel;
  readonly probe: AccelProbe;
}

/**
 * Id of the group that may read what is handed over.
 *
 * @returns undefined if none is configured
 * @throws SvcError `config_refused`: it is not known
 */
export async function accelGroupId({ cache }: Config): Promise<number | undefined> {
  const group = cache.accel_group;
  if (group === undefined) return undefined;
  const groupId = await groupIdOf(group);
  if (groupId !== undefined) return groupId;
  throw new SvcError(
    "config_refused",
    `cache.accel_group: there is no group "${group}" on this machine: make it with groupadd`,
  );
}

/**
 * The parts that hand stored responses to the proxy in front (`server.accel`).
 *
 * @returns undefined if it is not configured
 * @throws SvcError `config_refused`: the group is not known, or the folder cannot be given to it
 */
export async function assembleAccel(
  config: Config,
  storagePath: string,
  metrics: Metrics,
  logger: Logger,
): Promise<AccelAssembly | undefined> {
  const { server, cache } = config;
  const { accel_secret: secret } = server;
  if (server.accel === undefined || secret === undefined || !cache.enabled) return undefined;
  const group = cache.accel_group;
  const groupId = await accelGroupId(config);
  const files = new HandedFiles({ storagePath, folderName: HANDED_FOLDER, groupId, logger });
  const accel = new Accel({
    secret,
    files,
    refusals: new AccelRefusals({ metrics: metrics.accel, logger }),
    logger,
  });
  try {
    if (groupId === undefined) await makePrivate(storagePath);
    await files.prepare();
  } catch (error) {
    // The service can send the responses itself. Each request tries again.
    if (error instanceof HandedFolderRefused) {
      accel.failed(error);
      return { accel, probe: probeOf(accel, storagePath) };
    }
    const reason = systemCode(error) ?? "unknown";
    const advice =
      reason === "EPERM" ? `: make the user of this service a member of the group "${group}"` : "";
    throw new SvcError(
      "config_refused",
      `the folder for server.accel in ${storagePath} cannot be prepared (${reason})${advice}`,
      { cause: error },
    );
  }
  return { accel, probe: probeOf(accel, storagePath) };
}

function probeOf(accel: Accel, storagePath: string): AccelProbe {
  return new AccelProbe({ accel, folder: join(storagePath, HANDED_FOLDER) });
}
