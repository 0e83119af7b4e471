import { posix, win32 } from "node:path";

/** Syntax of paths: `posix` or `win32` of node:path. */
export type PathSyntax = typeof posix;

/** Properties of an operating system. Code that takes them can be tested on another one. */
export interface Platform {
  readonly system: NodeJS.Platform;
  readonly path: PathSyntax;
  /** Local servers listen on named pipes, not on Unix sockets, which are files. */
  readonly hasNamedPipes: boolean;
  /** Files have an owner and permission bits that say who can use them. */
  readonly hasModes: boolean;
  /** A path as the system itself gives it. Windows also takes a slash for its separator. */
  readonly native: (path: string) => string;
  /** A form that is equal for paths of the same file. macOS and Windows ignore letter case in names by default. */
  readonly fold: (path: string) => string;
}

const isSame = (path: string): string => path;

const UNIX: Omit<Platform, "system" | "fold"> = {
  path: posix,
  hasNamedPipes: false,
  hasModes: true,
  native: isSame,
};

const WINDOWS: Platform = {
  system: "win32",
  path: win32,
  hasNamedPipes: true,
  hasModes: false,
  native: (path) => win32.normalize(path),
  fold: (path) => win32.normalize(path).toLowerCase(),
};

export function platformOf(system: NodeJS.Platform): Platform {
  if (system === "win32") return WINDOWS;
  return { ...UNIX, system, fold: system === "linux" ? isSame : (path) => path.toLowerCase() };
}

/** The platform of this process. */
export const systemPlatform: Platform = platformOf(process.platform);
