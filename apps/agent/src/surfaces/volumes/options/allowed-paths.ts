import { VolumeError } from "../errors/volume-error.ts";

/** Every secret, in `docker.paths`. */
const ALL = "/";

/**
 * Checks that volumes may have these secrets.
 *
 * @param secrets paths of secrets, and of folders, which end in a slash
 * @param paths `docker.paths`; undefined: none for an engine that runs as root, all for one of the user
 * @param isRootful whether the engine runs as root
 * @throws VolumeError `path_refused`
 */
export function checkAllowed(
  secrets: readonly string[],
  paths: readonly string[] | undefined,
  isRootful: boolean,
): void {
  if (paths === undefined && !isRootful) return;
  const folders = (paths ?? []).map((path) => (path.endsWith("/") ? path : `${path}/`));
  const refused = secrets.find(
    (secret) => !folders.some((folder) => folder === ALL || secret.startsWith(folder)),
  );
  if (refused === undefined) return;
  const folder = refused.includes("/") ? refused.slice(0, refused.lastIndexOf("/") + 1) : ALL;
  throw new VolumeError("path_refused", `volumes may not have ${JSON.stringify(refused)}`, {
    hint: `Add ${JSON.stringify(folder)} to docker.paths of the agent's configuration, if everybody who may use this engine may read it.`,
  });
}
