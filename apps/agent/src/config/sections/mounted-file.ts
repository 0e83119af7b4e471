import { z } from "zod";

/** Longest name of a file (NAME_MAX), in bytes. */
const MAX_NAME_BYTES = 255;
/** Longest path below the mountpoint, in bytes: some hundred less than the system's limit for the whole path. */
const MAX_PATH_BYTES = 3000;

/** Path of a rendered file, relative to the mountpoint. */
export const mountedFile = z.string().superRefine((path, context) => {
  const fault = mountedFileFault(path);
  if (fault !== undefined) context.addIssue({ code: "custom", message: fault });
});

function mountedFileFault(path: string): string | undefined {
  if (path === "" || path.startsWith("/") || path.startsWith("~"))
    return "expected a path below the mountpoint, such as app/.env";
  // oxlint-disable-next-line no-control-regex -- they are what is refused
  if (/[\0-\x1F\x7F]/.test(path)) return "must not hold control characters";
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `must not be longer than ${MAX_PATH_BYTES} bytes`;
  const names = path.split("/");
  if (names.at(-1) === "") return "must name a file, not a folder";
  if (names.some((name) => name === "" || name === "." || name === ".."))
    return "must not hold empty, . or .. segments";
  if (names.some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES))
    return `each name must not be longer than ${MAX_NAME_BYTES} bytes`;
  return undefined;
}

/**
 * The secrets that would have a file or folder with a name of this path: `a.json` is the file of the secret `a`, and with the
 * layout `both` `a.d` is its folder.
 */
export function secretsWithNamesOf(path: string, layout: "json" | "both"): readonly string[] {
  const names = path.split("/");
  return names.flatMap((name, index) => {
    const [, stem] = (layout === "both" ? /^(.+)\.(?:json|d)$/ : /^(.+)\.json$/).exec(name) ?? [];
    return stem === undefined ? [] : [[...names.slice(0, index), stem].join("/")];
  });
}
