import type { Clock, Logger } from "@devplat/base";
import type { Config } from "../../../config/schema.ts";
import type { RemoteView } from "../../../remote-view.ts";
import type { Surface, SurfaceStatus } from "../../surface.ts";
import { ForwardError } from "../errors/forward-error.ts";
import type { NewRemote, RemoteControl, RemoteEdit, UnconfirmedKey } from "../remote-control.ts";
import { FileWatch } from "./file-watch.ts";
import type { Remotes, Saved } from "./remotes.ts";
import { ChangeListeners } from "../../../change-listeners.ts";

/** The forwards, built. */
export interface BuiltForwards {
  readonly remotes: Remotes;
  readonly surface: Surface;
}

export interface ForwardsOnDemandParts {
  /** Path of ssh.yaml. */
  readonly file: string;
  /** Whether an earlier daemon has left something that must be ended. */
  readonly hasLeftovers: () => Promise<boolean>;
  /** Loads the code. */
  readonly build: () => Promise<BuiltForwards>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Loads the code of forwards when there is an ssh.yaml, or when somebody adds a remote. Follows the file. */
export class ForwardsOnDemand implements Surface, RemoteControl {
  readonly #parts: ForwardsOnDemandParts;
  readonly #watch: FileWatch;
  readonly #listeners = new ChangeListeners();
  readonly #stopped = new AbortController();
  #building: Promise<BuiltForwards> | undefined;
  #built: BuiltForwards | undefined;

  constructor(parts: ForwardsOnDemandParts) {
    this.#parts = parts;
    this.#watch = new FileWatch(parts, () => void this.#reload());
  }

  /** Never fails: a fault of forwards does not keep the daemon from its start. */
  async start(): Promise<void> {
    await this.#watch.look();
    if (this.#watch.isThere || (await this.#parts.hasLeftovers())) await this.#tryToBuild();
    await this.#watch.follow();
  }

  async reconcile(config: Config): Promise<void> {
    // The folder may be another one, or may be there only now.
    await this.#watch.follow();
    if (this.#built !== undefined) await this.#built.surface.reconcile(config);
    else if ((await this.#watch.look()) && this.#watch.isThere) await this.#tryToBuild();
  }

  status(): SurfaceStatus {
    return this.#built?.surface.status() ?? {};
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#watch.close();
    await (await this.#building?.catch(() => undefined))?.surface.stop();
  }

  list(): readonly RemoteView[] {
    return this.#built?.remotes.list() ?? [];
  }

  get(host: string): RemoteView {
    return this.#remotes(host).get(host);
  }

  fileProblem(): string | undefined {
    return this.#built?.remotes.fileProblem();
  }

  async add(remote: NewRemote, signal: AbortSignal): Promise<Saved | UnconfirmedKey> {
    const added = await (await this.#build()).remotes.add(remote, signal);
    await this.#watch.follow();
    return added;
  }

  async edit(host: string, edit: RemoteEdit): Promise<RemoteView> {
    return await this.#remotes(host).edit(host, edit);
  }

  async remove(host: string): Promise<void> {
    await this.#remotes(host).remove(host);
  }

  async repin(
    host: string,
    accepted: readonly string[],
    signal: AbortSignal,
  ): Promise<Saved | UnconfirmedKey> {
    return await this.#remotes(host).repin(host, accepted, signal);
  }

  retry(host: string): void {
    this.#remotes(host).retry(host);
  }

  async revoke(host: string): Promise<void> {
    await this.#remotes(host).revoke(host);
  }

  consent(host: string, allowed: boolean): boolean {
    return this.#remotes(host).consent(host, allowed);
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** @throws ForwardError `host_unknown` while there is no ssh.yaml */
  #remotes(host: string): Remotes {
    if (this.#built === undefined) throw new ForwardError("host_unknown", `There is no remote ${host}`);
    return this.#built.remotes;
  }

  async #build(): Promise<BuiltForwards> {
    this.#stopped.signal.throwIfAborted();
    const start = async (): Promise<BuiltForwards> => {
      const built = await this.#parts.build();
      built.remotes.onChange(() => this.#listeners.changed(), this.#stopped.signal);
      await built.surface.start();
      this.#built = built;
      return built;
    };
    this.#building ??= start();
    try {
      return await this.#building;
    } catch (error) {
      this.#building = undefined;
      throw error;
    }
  }

  async #tryToBuild(): Promise<void> {
    try {
      await this.#build();
    } catch (error) {
      this.#parts.logger.error({ err: error }, "managed SSH forwards could not be started");
    }
  }

  async #reload(): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    await this.#watch.follow();
    if (this.#built === undefined) await this.#tryToBuild();
    else await this.#built.remotes.reload();
  }
}
