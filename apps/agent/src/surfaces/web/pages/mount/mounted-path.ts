import { join } from "node:path";
import type { FuseStatus } from "../../../../status.ts";
import { isFileName } from "../../../mount/tree/file-names.ts";

/**
 * Path of a secret on the mount, or of one of its fields.
 *
 * @returns undefined where the mount has no such file
 */
export function mountedPath(
  { mountpoint, layout }: Pick<FuseStatus, "mountpoint" | "layout">,
  secret: string,
  field?: string,
): string | undefined {
  if (field !== undefined && layout !== "both") return undefined;
  const names = field === undefined ? `${secret}.json`.split("/") : [...`${secret}.d`.split("/"), field];
  return names.every(isFileName) ? join(mountpoint, ...names) : undefined;
}
