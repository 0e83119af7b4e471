import { readFile } from "node:fs/promises";

/** One line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)). */
export interface MountedFilesystem {
  readonly id: number;
  readonly parentId: number;
  /** Major and minor number. Bind mounts of one filesystem have the same. */
  readonly device: string;
  /** Folder of the filesystem that is mounted; another one than `/` is a bind mount. */
  readonly root: string;
  readonly mountpoint: string;
  readonly options: readonly string[];
  /** Such as `ext4` or `fuse.sshfs`. */
  readonly type: string;
  readonly source: string;
  readonly superOptions: readonly string[];
}

/** Marks by which the daemon knows its own mounts. */
export interface MountIdentity {
  /** `fsname`: the source in the mount table. */
  readonly source: string;
  /** The type in the mount table is `fuse.<subtype>`. */
  readonly subtype: string;
  readonly uid: number;
}

/** Mounts that this process sees. */
export async function readMounts(): Promise<MountedFilesystem[]> {
  return parseMountinfo(await readFile("/proc/self/mountinfo"));
}

/** Lines without the form of a mount are left out. Paths that are not UTF-8 have U+FFFD in them. */
export function parseMountinfo(content: Buffer): MountedFilesystem[] {
  // As Latin-1 every byte is one character, until the escapes are resolved.
  return content
    .toString("latin1")
    .split("\n")
    .flatMap((line) => parseLine(line) ?? []);
}

/** The mount that a look-up of this path finds: the topmost one of those at the same place. */
export function mountAt(mounts: readonly MountedFilesystem[], path: string): MountedFilesystem | undefined {
  const here = mounts.filter(({ mountpoint }) => mountpoint === path);
  return here.findLast(({ id }) => !here.some(({ parentId }) => parentId === id)) ?? here.at(-1);
}

/** Whether the daemon of this user has made the mount, or it is a bind mount of one. */
export function isOwnMount(mount: MountedFilesystem, { source, subtype, uid }: MountIdentity): boolean {
  return (
    mount.type === `fuse.${subtype}` &&
    mount.source === source &&
    mount.superOptions.includes(`user_id=${uid}`)
  );
}

function parseLine(line: string): MountedFilesystem | undefined {
  const words = line.split(" ");
  // Optional fields end with a hyphen.
  const hyphen = words.indexOf("-", 6);
  const [id, parentId, device, root, mountpoint, options] = words;
  const [type, source, superOptions] = hyphen === -1 ? [] : words.slice(hyphen + 1);
  if (!isNumber(id) || !isNumber(parentId) || device === undefined || root === undefined) return undefined;
  if (mountpoint === undefined || options === undefined) return undefined;
  if (type === undefined || source === undefined || superOptions === undefined) return undefined;
  return {
    id: Number(id),
    parentId: Number(parentId),
    device,
    root: unescape(root),
    mountpoint: unescape(mountpoint),
    options: unescape(options).split(","),
    type: unescape(type),
    source: unescape(source),
    superOptions: unescape(superOptions).split(","),
  };
}

function isNumber(word: string | undefined): boolean {
  return word !== undefined && /^\d+$/.test(word);
}

/** The kernel writes space, tab, newline, backslash and # as octal numbers. */
function unescape(word: string): string {
  const bytes = word.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
  return Buffer.from(bytes, "latin1").toString("utf8");
}
