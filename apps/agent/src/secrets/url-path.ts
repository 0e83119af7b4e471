/**
 * The path of a secret or folder from a request target, exactly as in the request.
 *
 * @param rawPath path of the request target, not decoded
 * @param prefix the part of the path before it, ending in `/`
 * @returns undefined for an encoding that is not UTF-8. The secret store checks everything else.
 */
export function storePath(rawPath: string, prefix: string): string | undefined {
  const encoded = rawPath.slice(prefix.length);
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

/** The path for a URL: every segment encoded, slashes kept. */
export function urlPath(path: string): string {
  return path
    .split("/")
    .map((segment) => encodeURIComponent(segment))
    .join("/");
}

/** The last segment of a path; with its slash for a folder. */
export function lastName(path: string): string {
  return path.slice(path.lastIndexOf("/", path.length - 2) + 1);
}

/** The folder that holds a secret or folder: `""` for the root, else ending in `/`. */
export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/", path.length - 2) + 1);
}
