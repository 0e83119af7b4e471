import type { Fields } from "@devplat/secret-store";
import { documentBytes, fieldBytes } from "../../../secrets/secret-bytes.ts";
import type { VolumeOptions } from "../options/volume-options.ts";
import { VolumeError } from "../errors/volume-error.ts";

/** Longest name of a file on Linux, in bytes. */
const MAX_NAME_BYTES = 255;

/** The files of a volume. */
export interface SecretFiles {
  /** Content by path below the volume's root, in which folders are separated by slashes. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** Paths of secrets and fields (`path#field`) that have no file, because a name in them cannot be the name of a file. */
  readonly omitted: readonly string[];
}

/**
 * Turns secrets into files: `demo/registry` into `demo/registry.json`, or with the layout `fields` into `demo/registry/<field>`.
 *
 * @param secrets fields of each secret, by path
 * @throws VolumeError `content_unwritable` if two secrets want the same file, or a file where another needs a folder
 */
export function secretFiles(
  secrets: ReadonlyMap<string, Fields>,
  layout: VolumeOptions["layout"],
): SecretFiles {
  const files = new Map<string, Buffer>();
  const folders = new Set<string>();
  const omitted: string[] = [];
  const add = (source: string, segments: readonly string[], content: Buffer): void => {
    if (!segments.every(isFileName) || segments[0]?.startsWith("..") === true) {
      omitted.push(source);
      return;
    }
    const path = segments.join("/");
    if (files.has(path) || folders.has(path)) throw clash(source, path);
    for (let depth = 1; depth < segments.length; depth++) {
      const folder = segments.slice(0, depth).join("/");
      if (files.has(folder)) throw clash(source, folder);
      folders.add(folder);
    }
    files.set(path, content);
  };
  for (const [path, fields] of secrets) {
    const segments = path.split("/");
    if (layout === "json")
      add(path, [...segments.slice(0, -1), `${segments.at(-1) ?? ""}.json`], documentBytes(fields));
    else for (const [name, value] of fields) add(`${path}#${name}`, [...segments, name], fieldBytes(value));
  }
  return { files, omitted };
}

/** Names that a folder on Linux can have. An unpaired surrogate would become another character. */
function isFileName(name: string): boolean {
  return (
    name !== "" &&
    name !== "." &&
    name !== ".." &&
    !/[/\0]/.test(name) &&
    name.isWellFormed() &&
    Buffer.byteLength(name) <= MAX_NAME_BYTES
  );
}

function clash(source: string, path: string): VolumeError {
  return new VolumeError(
    "content_unwritable",
    `${JSON.stringify(source)} has no place in the volume: ${JSON.stringify(path)} belongs to another secret`,
    { hint: "Use another layout, or put the two into volumes of their own." },
  );
}
