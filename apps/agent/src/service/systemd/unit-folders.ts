import { dirname, join } from "node:path";
import { exists } from "@devplat/base";
import type { Places } from "../../agent-files/places.ts";
import { SERVICE_UNIT } from "./unit-files.ts";

/** The user's own folder of unit files (systemd.unit(5), "Unit File Load Path"). */
export function unitFolder({ configFolder }: Pick<Places, "configFolder">): string {
  return join(dirname(configFolder), "systemd/user");
}

/** The folder in which a package has the units; undefined if none has. */
export async function packagedFolder(
  unitPath: readonly string[],
  own: string,
  environment: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const runtime = environment["XDG_RUNTIME_DIR"];
  const isOfUser = (folder: string): boolean =>
    folder.startsWith(own) || (runtime !== undefined && folder.startsWith(`${runtime}/`));
  for (const folder of unitPath)
    if (!isOfUser(folder) && (await exists(join(folder, SERVICE_UNIT)))) return folder;
  return undefined;
}
