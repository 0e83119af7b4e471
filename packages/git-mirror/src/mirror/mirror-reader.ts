import { Serializer } from "@devplat/base/serializer";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { RepositoryStorage, StoredRepository } from "../storage/contract.ts";
import { retryOnChange } from "../storage/storage-changed.ts";
import type { MirrorView } from "./mirror-view.ts";
import { OpenMirror } from "./open-mirror.ts";
import { Opening } from "./opening.ts";

/** Packs of a mirror, and their bytes. */
export interface MirrorFigures {
  readonly packs: number;
  readonly bytes: number;
}

/** Keeps a repository open, and follows its changes by this process and others. */
export class MirrorReader {
  readonly #storage: RepositoryStorage;
  readonly #ended: AbortSignal;
  /** Opening, refreshing and closing run one after another. */
  readonly #turns = new Serializer();
  readonly #opening = new Opening(() => this.current());
  #open: OpenMirror | undefined;
  #lastFigures: MirrorFigures | undefined;
  #isPaused = false;
  /** Changes in progress. They need the repository open. */
  #uses = 0;
  #damagedIndexes: string[] = [];

  /** @param ended fires when the mirror is closed for good */
  constructor(storage: RepositoryStorage, ended: AbortSignal) {
    this.#storage = storage;
    this.#ended = ended;
  }

  /** Returns the mirror as it is now. Undefined: there is none, or none of this format. See {@link Mirror.view}. */
  async view(format: ObjectFormat): Promise<MirrorView | undefined> {
    return await this.#turns.run(async () => {
      const open = await this.#current({ forChange: false });
      const view = open?.repository.format === format ? open.view() : undefined;
      if (view === undefined || view.refs.size > 0) return view;
      view.release();
      return undefined;
    });
  }

  /** Whether the next view has to open the repository. See {@link Mirror.isClosed}. */
  async isClosed(): Promise<boolean> {
    return this.#open === undefined && (await this.#storage.version())?.commit !== undefined;
  }

  /** Whether nothing is stored. See {@link Mirror.isEmpty}. */
  async isEmpty(): Promise<boolean> {
    return (await this.#storage.version())?.commit === undefined;
  }

  /** Waits a short time while the repository is being opened. See {@link Mirror.viewSoon}. */
  async isOpenSoon(onLateFailure: (error: unknown) => void): Promise<boolean> {
    return this.#open !== undefined || (await this.#opening.isDoneSoon(onLateFailure));
  }

  /** Returns the open repository after a refresh. */
  async current(): Promise<StoredRepository | undefined> {
    return await this.#turns.run(async () => (await this.#current({ forChange: false }))?.repository);
  }

  /** Opens the repository, or creates it. One of another format is removed. */
  async forChange(format: ObjectFormat): Promise<StoredRepository> {
    return await this.#turns.run(async () => {
      const open = await this.#current({ forChange: true });
      if (open?.repository.format === format) return open.repository;
      if (open !== undefined) {
        this.close();
        await this.#storage.remove();
      }
      const repository = await this.#storage.create(format);
      const version = await this.#storage.version();
      this.#open = await OpenMirror.of(repository, version?.incarnation ?? "", this.#ended);
      return repository;
    });
  }

  /** Packs, and their bytes, as they were when the repository was open for the last time. Undefined: it was not yet. */
  get figures(): MirrorFigures | undefined {
    const packs = this.#open?.repository.objects.packs;
    if (packs === undefined) return this.#lastFigures;
    return { packs: packs.length, bytes: packs.reduce((sum, pack) => sum + pack.size, 0) };
  }

  /** Keeps the repository open until the result is disposed. */
  keepOpen(): Disposable {
    this.#uses++;
    return { [Symbol.dispose]: () => void this.#uses-- };
  }

  /** Closes the repository until it is needed again, unless a change is in progress. */
  rest(): void {
    void this.#turns.run(() => {
      if (this.#uses === 0) this.close();
    });
  }

  /** Gives readers nothing until {@link resume}. Changes continue. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
  }

  /** Closes the repository. Its next use opens it again. */
  async reopen(): Promise<void> {
    await this.#turns.run(() => this.close());
  }

  /** Names of index files that were damaged and quarantined since the last call. */
  takeDamagedIndexes(): string[] {
    return this.#damagedIndexes.splice(0);
  }

  /** Waits until the repository is open, if it is being opened. */
  async settled(): Promise<void> {
    await this.#opening.settled();
  }

  /** Closes the files. Views stay readable until they are released. */
  close(): void {
    this.#lastFigures = this.figures;
    this.#open?.close();
    this.#open = undefined;
  }

  /** @param use for a change a repository without a commit is opened, too, and also during a pause */
  async #current(use: { readonly forChange: boolean }): Promise<OpenMirror | undefined> {
    if (this.#isPaused && !use.forChange) return undefined;
    return await retryOnChange(() => this.#refreshed(use.forChange));
  }

  async #refreshed(isEmptyGood: boolean): Promise<OpenMirror | undefined> {
    const version = await this.#storage.version();
    // Another process may have removed it, and made another one.
    if (this.#open !== undefined && this.#open.incarnation !== version?.incarnation) this.close();
    if (version === undefined || (version.commit === undefined && !isEmptyGood)) return undefined;
    if (this.#open === undefined) {
      const repository = await this.#storage.open(this.#ended);
      if (repository === undefined) return undefined;
      this.#open = await OpenMirror.of(repository, version.incarnation, this.#ended);
      this.#damagedIndexes.push(...(await this.#open.quarantineIndexes()));
    }
    const open = this.#open;
    const { commit } = version;
    if (open.commit === commit || commit === undefined) return open;
    if (await open.refresh(this.#storage, commit, this.#ended)) return open;
    this.close();
    return await this.#refreshed(isEmptyGood);
  }
}
