import { readFile, rename } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { writeAtomically, type Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { z } from "zod";
import { readOwnFile, unwritableFile } from "../../agent-files/own-file.ts";

/** Changes with every start of the host (random(4)). */
const BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id";

const recordSchema = z.object({
  options: z.record(z.string(), z.string()).describe("As `docker volume create -o` gave them"),
  rootful: z.boolean().describe("Whether the engine that has asked last runs as root"),
  mounts: z.array(z.string()).describe("IDs of the mounts"),
  content: z.string().nullable().describe("Which versions the files have; null without files"),
});
/** A volume as the file has it. Never a value. */
export type VolumeRecord = Readonly<z.infer<typeof recordSchema>>;

const fileSchema = z.object({
  boot_id: z.string(),
  volume_dir: z.string(),
  volumes: z.record(z.string(), recordSchema),
});

export interface VolumeStateParts {
  /** Path of the file, in the state folder. */
  readonly path: string;
  /** `docker.volume_dir`, absolute. */
  readonly folder: string;
  /** Id of this start of the host. Default: read from the kernel. */
  readonly bootId?: string;
  readonly logger: Logger;
}

/** The volumes and their mounts, in a file. Mounts of an earlier start of the host are dropped. */
export class VolumeState {
  readonly #path: string;
  readonly #bootId: string;
  readonly #writes = new Serializer();
  readonly #records: Map<string, VolumeRecord>;
  /** Folder of the files: that of the mounts that there are, otherwise the configured one. */
  readonly folder: string;
  /** Whether an earlier state could not be read. Files of mounted volumes may then be left. */
  readonly isRebuilt: boolean;

  private constructor(
    path: string,
    bootId: string,
    {
      folder,
      records,
      isRebuilt,
    }: { folder: string; records: Map<string, VolumeRecord>; isRebuilt: boolean },
  ) {
    this.#path = path;
    this.#bootId = bootId;
    this.#records = records;
    this.folder = folder;
    this.isRebuilt = isRebuilt;
  }

  static async open({ path, folder, logger, bootId }: VolumeStateParts): Promise<VolumeState> {
    const boot = bootId ?? (await readFile(BOOT_ID_FILE, "utf8")).trim();
    const text = await readOwnFile(path);
    if (text === undefined)
      return new VolumeState(path, boot, { folder, records: new Map(), isRebuilt: false });
    const document = parse(text.toString("utf8"));
    if (document === undefined) {
      logger.error({ file: path }, "the list of volumes is damaged and begins again");
      await rename(path, `${path}.damaged`);
      return new VolumeState(path, boot, { folder, records: new Map(), isRebuilt: true });
    }
    const isSameBoot = document.boot_id === boot;
    const records = new Map(
      Object.entries(document.volumes).map(([name, record]) => [
        name,
        isSameBoot ? record : { ...record, mounts: [], content: null },
      ]),
    );
    const isMounted = [...records.values()].some(({ mounts }) => mounts.length > 0);
    return new VolumeState(path, boot, {
      folder: isMounted ? document.volume_dir : folder,
      records,
      isRebuilt: false,
    });
  }

  get(name: string): VolumeRecord | undefined {
    return this.#records.get(name);
  }

  names(): readonly string[] {
    return [...this.#records.keys()].toSorted();
  }

  /** Sets a record, and resolves when it is on the disk. @throws AgentError `place_refused`; the record is set anyway */
  async set(name: string, record: VolumeRecord): Promise<void> {
    if (isDeepStrictEqual(this.#records.get(name), record)) return;
    this.#records.set(name, record);
    await this.#save();
  }

  /** @throws AgentError `place_refused`; the record is removed anyway */
  async delete(name: string): Promise<void> {
    if (this.#records.delete(name)) await this.#save();
  }

  async #save(): Promise<void> {
    await this.#writes.run(async () => {
      const document = {
        boot_id: this.#bootId,
        volume_dir: this.folder,
        volumes: Object.fromEntries(this.#records),
      };
      try {
        await writeAtomically(this.#path, `${JSON.stringify(document, undefined, 2)}\n`);
      } catch (error) {
        throw unwritableFile(this.#path, error);
      }
    });
  }
}

function parse(text: string): z.infer<typeof fileSchema> | undefined {
  try {
    return fileSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
