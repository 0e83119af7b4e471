import type { Clock, Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { BRAND } from "../../brand.ts";
import { publicMessage } from "../../errors.ts";
import type { CachedSecrets, SecretVersion } from "../../secrets/folder/cached-secrets.ts";
import { SecretFolder } from "../../secrets/folder/secret-folder.ts";
import type { StoreChanges } from "../../secrets/folder/store-changes.ts";
import type { VolumeContent } from "./content/volume-content.ts";
import { VolumeError } from "./errors/volume-error.ts";
import { checkAllowed } from "./options/allowed-paths.ts";
import type { VolumeOptions } from "./options/volume-options.ts";
import type { Caller } from "./plugin/plugin-protocol.ts";
import { VolumeCondition } from "./volume-condition.ts";
import { RefreshLoop } from "./refresh-loop.ts";
import type { VolumeRecord, VolumeState } from "./volume-state.ts";
import { VolumeSecrets, fingerprintOf } from "./volume-secrets.ts";

/** The first Mount must be complete after this time, in milliseconds. Docker waits two minutes. */
const FILL_LIMIT_MS = 20_000;

export interface VolumeParts {
  readonly secrets: CachedSecrets;
  readonly changes: StoreChanges;
  readonly state: VolumeState;
  readonly isSignedIn: () => boolean;
  readonly settings: () => VolumeSettings;
  /** Is told when the files of a mounted volume have changed, after the volume's lock was released. */
  readonly onRefreshed: (volume: string) => void;
  /** Is told when the status has changed. */
  readonly onChange: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The configuration as it applies now. */
export interface VolumeSettings {
  readonly cacheTtlMs: number;
  /** `docker.paths`. */
  readonly paths: readonly string[] | undefined;
}

/** One volume: it has files while a container has it mounted. Calls run one after another. */
export class Volume {
  readonly name: string;
  readonly options: VolumeOptions;
  readonly content: VolumeContent;
  readonly condition = new VolumeCondition();
  readonly #parts: VolumeParts;
  readonly #turns = new Serializer();
  readonly #folder: SecretFolder;
  readonly #reader: VolumeSecrets;
  #record: VolumeRecord;
  #isRemoved = false;
  /** Ends following the store. Undefined while it is not followed. */
  #following: AbortController | undefined;
  #loop: RefreshLoop | undefined;

  constructor(
    parts: VolumeParts,
    {
      name,
      options,
      content,
      record,
    }: Pick<Volume, "name" | "options" | "content"> & { record: VolumeRecord },
  ) {
    this.name = name;
    this.options = options;
    this.content = content;
    this.#parts = parts;
    this.#record = record;
    this.#folder = new SecretFolder(parts, { roots: options.secrets, pollMs: this.#pollMs });
    this.#reader = new VolumeSecrets(parts.secrets, this.#folder, options);
  }

  get record(): VolumeRecord {
    return this.#record;
  }

  get mountCount(): number {
    return this.#record.mounts.length;
  }

  /** The volume's own option wins over the configuration. */
  get #pollMs(): number {
    return this.options.ttlMs ?? this.#parts.settings().cacheTtlMs;
  }

  /** Follows the store again after a start of the daemon. */
  resume(): void {
    if (this.mountCount > 0) this.#follow();
  }

  /** Ends following. The files stay for the containers that have them. */
  async stop(): Promise<void> {
    this.#following?.abort();
    this.#following = undefined;
    await this.#turns.settled();
  }

  /** Takes up a changed configuration. */
  reconcile(): void {
    this.#folder.setPollMs(this.#pollMs);
    this.retryNow();
  }

  /** Tries a failed refresh now, such as after a sign-in. */
  retryNow(): void {
    this.#loop?.wake();
  }

  /** @throws VolumeError; nothing is left of a failed first mount */
  async mount(id: string, { isRootful }: Caller): Promise<void> {
    await this.#turns.run(async () => {
      if (this.#isRemoved) throw unknownVolume(this.name);
      const { mounts } = this.#record;
      const isFilled = this.#record.content !== null && (await this.content.isWritten());
      if (mounts.includes(id) && isFilled) return;
      checkAllowed(this.options.secrets, this.#parts.settings().paths, isRootful);
      this.#checkSignedIn();
      try {
        const content = isFilled ? this.#record.content : await this.#fill();
        const next = [...new Set([...mounts, id])];
        await this.#save({ ...this.#record, rootful: isRootful, mounts: next, content });
      } catch (error) {
        // Without an earlier mount nothing may stay. The reference is counted only if it was saved.
        if (mounts.length === 0) await this.#clear().catch(() => undefined);
        else await this.#save({ ...this.#record, mounts }).catch(() => undefined);
        throw error;
      }
      this.#follow();
    });
    this.#parts.onChange();
  }

  /** The last one removes the files. @throws VolumeError, AgentError */
  async unmount(id: string): Promise<void> {
    await this.#drop((mounts) => mounts.filter((each) => each !== id));
  }

  /** Drops all mounts, and removes the files. @returns the number of mounts @throws VolumeError, AgentError */
  async release(): Promise<number> {
    const count = this.mountCount;
    await this.#drop(() => []);
    return count;
  }

  /** Removes the volume. @throws VolumeError `volume_in_use` */
  async remove(): Promise<void> {
    await this.#turns.run(async () => {
      if (this.mountCount > 0) {
        throw new VolumeError(
          "volume_in_use",
          `the volume ${this.name} is mounted ${this.mountCount} times`,
          {
            hint: `If no container has it any more, run '${BRAND.command} docker release ${this.name}'.`,
          },
        );
      }
      await this.#clear();
      await this.#parts.state.delete(this.name);
      this.#isRemoved = true;
    });
    this.#parts.onChange();
  }

  async #drop(rest: (mounts: readonly string[]) => string[]): Promise<void> {
    await this.#turns.run(async () => {
      if (this.#isRemoved) return;
      const mounts = rest(this.#record.mounts);
      if (mounts.length > 0) return await this.#save({ ...this.#record, mounts });
      await this.#clear();
    });
    this.#parts.onChange();
  }

  /** Removes mounts and files. */
  async #clear(): Promise<void> {
    this.#following?.abort();
    this.#following = undefined;
    this.condition.emptied();
    this.#reader.forget();
    const saved = this.#save({ ...this.#record, mounts: [], content: null });
    // The files go also if the state cannot be saved.
    const [wiped, outcome] = await Promise.allSettled([
      saved.catch(() => undefined).then(() => this.content.wipe()),
      saved,
    ]);
    if (wiped.status === "rejected") {
      this.condition.failure = publicMessage(wiped.reason);
      throw wiped.reason as Error;
    }
    if (outcome.status === "rejected") throw outcome.reason as Error;
  }

  /** Writes the files for the first mount. @returns their fingerprint */
  async #fill(): Promise<string> {
    const limit = AbortSignal.timeout(FILL_LIMIT_MS);
    try {
      const { secrets } = await this.#reader.lookAll(limit);
      return await this.#write(secrets, limit);
    } catch (error) {
      if (!limit.aborted || error !== limit.reason) throw error;
      const seconds = FILL_LIMIT_MS / 1000;
      throw new VolumeError("secret_unreadable", `the secrets store has not answered within ${seconds} s`);
    }
  }

  async #write(versions: ReadonlyMap<string, SecretVersion>, signal: AbortSignal): Promise<string> {
    const { files, omitted } = await this.#reader.read(versions, signal);
    await this.content.write(files, this.options);
    this.condition.filled(versions.size, omitted);
    return fingerprintOf(versions);
  }

  #follow(): void {
    if (this.#following !== undefined) return;
    this.#following = new AbortController();
    const { signal } = this.#following;
    const { clock, logger, onChange } = this.#parts;
    const loop = new RefreshLoop(clock);
    this.#folder.onChange(() => loop.wake(), signal);
    this.#loop = loop;
    void this.#folder.follow(signal);
    void loop.run(
      (inner) => this.#refresh(inner),
      (error) => {
        const problem = error === undefined ? undefined : publicMessage(error);
        if (problem !== undefined && problem !== this.condition.failure) {
          logger.warn({ volume: this.name, err: error }, "volume could not be refreshed");
        }
        this.condition.failure = problem;
        onChange();
      },
      signal,
    );
  }

  /** Brings the files in step with the store. A failure leaves the last ones. */
  async #refresh(signal: AbortSignal): Promise<void> {
    const { settings, onRefreshed, logger } = this.#parts;
    checkAllowed(this.options.secrets, settings().paths, this.#record.rootful);
    this.#checkSignedIn();
    const { secrets } = await this.#reader.look(signal);
    const fingerprint = fingerprintOf(secrets);
    const isCurrent = async (): Promise<boolean> =>
      this.#record.content === fingerprint && (await this.content.isWritten());
    if (await isCurrent()) {
      this.condition.kept(secrets.size);
      return;
    }
    const read = await this.#reader.read(secrets, signal);
    const isWritten = await this.#turns.run(async () => {
      // A container may have gone, or come back, since.
      if (signal.aborted || (await isCurrent())) return false;
      await this.content.write(read.files, this.options);
      this.condition.filled(secrets.size, read.omitted);
      await this.#save({ ...this.#record, content: fingerprint });
      return true;
    });
    if (!isWritten) return;
    logger.info({ volume: this.name, secrets: secrets.size }, "volume refreshed");
    onRefreshed(this.name);
  }

  async #save(record: VolumeRecord): Promise<void> {
    this.#record = record;
    await this.#parts.state.set(this.name, record);
  }

  #checkSignedIn(): void {
    if (this.#parts.isSignedIn()) return;
    throw new VolumeError("not_signed_in", "the agent is not signed in to the secrets store", {
      hint: `Run '${BRAND.command} login' as the user of this volume plugin, then start the container again.`,
    });
  }
}

/** Error for a volume that does not exist. */
export function unknownVolume(name: string): VolumeError {
  return new VolumeError("volume_unknown", `there is no volume ${JSON.stringify(name.slice(0, 100))}`);
}
