import { constants } from "node:fs";
import { mkdir, open, readdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "@devplat/base";
import { AgentError } from "../../../errors.ts";
import { ensureFolder } from "../../../agent-files/places.ts";
import { VolumeContent } from "./volume-content.ts";

/** A folder with this file belongs to the daemon, and it may remove everything in it. */
const MARKER = ".volumes-of-agent";
/** File systems in memory (statfs(2): TMPFS_MAGIC, RAMFS_MAGIC). */
const MEMORY_FILE_SYSTEMS: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);

/** The folder with the files of all volumes. */
export class VolumesFolder {
  readonly path: string;

  /** @param path absolute */
  constructor(path: string) {
    this.path = path;
  }

  /** Makes the folder. @throws AgentError `place_refused` if it holds files that are not of volumes */
  async prepare(): Promise<void> {
    const names = await namesIn(this.path);
    if (!names.includes(MARKER)) {
      if (names.length > 0) {
        throw new AgentError("place_refused", `cannot use ${this.path} for volumes: it is not empty`, {
          hint: "Set docker.volume_dir to a folder that does not exist yet.",
        });
      }
      await mkdir(this.path, { recursive: true, mode: 0o700 });
    }
    await ensureFolder(this.path);
    const { O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
    await (await open(join(this.path, MARKER), O_CREAT | O_WRONLY | O_NOFOLLOW, 0o600)).close();
  }

  content(volume: string): VolumeContent {
    return new VolumeContent(this.path, volume);
  }

  /** Removes the content of all volumes but these. @returns errors by volume */
  async wipeExcept(volumes: ReadonlySet<string>): Promise<ReadonlyMap<string, unknown>> {
    const failures = new Map<string, unknown>();
    for (const name of await namesIn(this.path)) {
      if (name === MARKER || volumes.has(name)) continue;
      await this.content(name)
        .wipe()
        .catch((error: unknown) => failures.set(name, error));
    }
    return failures;
  }

  /** Whether the files are in memory only, not on a disk. */
  async isInMemory(): Promise<boolean> {
    return MEMORY_FILE_SYSTEMS.has((await statfs(this.path)).type);
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw new AgentError(
      "place_refused",
      `cannot use ${folder} for volumes: ${systemCode(error) ?? "unknown error"}`,
      {
        hint: "Check who owns it.",
        cause: error,
      },
    );
  }
}
