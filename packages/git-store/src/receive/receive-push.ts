import { messageText } from "@devplat/git-protocol";
import {
  hasCapability,
  type PushReport,
  type ReceivePackRequest,
  type RefCommand,
} from "@devplat/git-protocol/receive-pack";
import { parseCommit } from "../commit.ts";
import { GitStoreError, PACK_ERROR_CODES, type GitStoreErrorCode } from "../errors.ts";
import { COMMIT } from "../object-format.ts";
import type { Oid } from "../oid.ts";
import { isTrue } from "../repository/config-file.ts";
import { isRefName } from "../repository/ref-name.ts";
import type { Head, Repository } from "../repository/repository.ts";
import { updateEachRef, updateRefs } from "../refs/update-refs.ts";
import { finishInSlices, type Steps } from "../slices.ts";
import { ConnectivityWalk } from "./connectivity-walk.ts";
import type { HookResult, Push, ReceiveOptions } from "./push.ts";
import { Quarantine } from "./quarantine.ts";

/** Collaborators of {@link receivePush}. */
export interface ReceiveParts {
  readonly repository: Repository;
  /** Objects that the refs of the repository reach. */
  readonly reachable: () => Promise<{ has(oid: Oid): boolean }>;
  /** Sends text to the client. */
  readonly tell: (text: string) => void;
  /** Sends the report, before `postReceive` is called. */
  readonly report: (report: PushReport) => void;
  /** Receives errors that are not the client's. */
  readonly onError: (error: unknown) => void;
  /** Stops the push, unless its refs are being changed. */
  readonly signal: AbortSignal;
}

/** Errors of a pack that the client sent. Others are those of the server: their texts name its files. */
const PACK_FAULTS: ReadonlySet<GitStoreErrorCode> = new Set(PACK_ERROR_CODES);

/** Repositories from which leftovers of killed processes were removed. */
const cleaned = new WeakSet<Repository>();

/**
 * Carries out a push as `git receive-pack` does: quarantine, connectivity check, hooks, migration, refs, report.
 *
 * @param pack undefined if all commands delete
 */
export async function receivePush(
  parts: ReceiveParts,
  request: ReceivePackRequest,
  pack: AsyncIterable<Uint8Array> | undefined,
  options: ReceiveOptions,
): Promise<void> {
  const { repository, signal } = parts;
  const { limits, workers, detectCollisions } = options;
  const commands = request.commands.map((command) => new PendingCommand(command));
  if (!cleaned.has(repository)) {
    cleaned.add(repository);
    await repository.removeLeftovers().catch(parts.onError);
  }
  let quarantine: Quarantine;
  try {
    quarantine = await Quarantine.open(repository, pack, {
      signal,
      ...(limits === undefined ? {} : { limits }),
      ...(workers === undefined ? {} : { workers }),
      ...(detectCollisions === undefined ? {} : { detectCollisions }),
    });
  } catch (error) {
    signal.throwIfAborted();
    const isTheirs = error instanceof GitStoreError && PACK_FAULTS.has(error.code);
    if (!isTheirs) parts.onError(error);
    const reason = isTheirs ? error.message : "the pack could not be stored";
    for (const command of commands) command.refuse("unpacker error");
    parts.report({ unpackError: wire(reason), refs: commands.map((each) => each.report()) });
    return;
  }
  try {
    const receiver = new Receiver(parts, request, options, quarantine, commands);
    await receiver.run();
  } finally {
    await quarantine.close();
  }
}

/** A command, and the reason for which it was refused. */
class PendingCommand {
  /** The command with a name as the repository has it. */
  readonly command: RefCommand;
  readonly #wireName: string;
  #error: string | undefined;

  constructor(command: RefCommand) {
    this.#wireName = command.name;
    // The protocol has bytes. The repository has names in UTF-8.
    const name = Buffer.from(command.name, "latin1").toString("utf8");
    this.command = { ...command, name };
    const isUtf8 = Buffer.from(name).toString("latin1") === command.name;
    if (!isUtf8 || !isRefName(name) || name.split("/").length < 3) this.refuse("funny refname");
  }

  get isOpen(): boolean {
    return this.#error === undefined;
  }

  /** The first reason counts. */
  refuse(reason: string): void {
    this.#error ??= reason;
  }

  report(): PushReport["refs"][number] {
    const name = this.#wireName;
    return this.#error === undefined ? { name } : { name, error: wire(this.#error) };
  }
}

class Receiver {
  readonly #parts: ReceiveParts;
  readonly #request: ReceivePackRequest;
  readonly #options: ReceiveOptions;
  readonly #quarantine: Quarantine;
  readonly #commands: readonly PendingCommand[];
  readonly #isAtomic: boolean;
  #head: Head | undefined;
  #refs: Awaited<ReturnType<Repository["refs"]>> | undefined;

  constructor(
    parts: ReceiveParts,
    request: ReceivePackRequest,
    options: ReceiveOptions,
    quarantine: Quarantine,
    commands: readonly PendingCommand[],
  ) {
    this.#parts = parts;
    this.#request = request;
    this.#options = options;
    this.#quarantine = quarantine;
    this.#commands = commands;
    this.#isAtomic = hasCapability(request, "atomic");
  }

  async run(): Promise<void> {
    const { report, signal } = this.#parts;
    if (this.#request.certificate !== undefined) this.#refuseAll("push certificates are not accepted");
    this.#refuseRepeated();
    await this.#checkConnected();
    this.#refuseRestIfAtomic();
    if (this.#open().length > 0) {
      const reason = await this.#hook("preReceive", async () => this.#options.preReceive?.(this.#push()));
      if (reason !== undefined) this.#refuseAll(reason);
    }
    for (const each of this.#open()) {
      const reason = (await this.#policy(each.command)) ?? (await this.#updateHook(each.command));
      if (reason !== undefined) each.refuse(reason);
    }
    this.#refuseRestIfAtomic();
    signal.throwIfAborted();
    await this.#updateRefs();
    report({ unpackError: undefined, refs: this.#commands.map((each) => each.report()) });
    if (this.#open().length === 0) return;
    await this.#hook("postReceive", async () => this.#options.postReceive?.(this.#push()));
  }

  #open(): PendingCommand[] {
    return this.#commands.filter(({ isOpen }) => isOpen);
  }

  #refuseAll(reason: string): void {
    for (const each of this.#commands) each.refuse(reason);
  }

  /** Refuses all commands for a ref that more than one names, as git does. */
  #refuseRepeated(): void {
    const uses = new Map<string, number>();
    for (const { command } of this.#commands) uses.set(command.name, (uses.get(command.name) ?? 0) + 1);
    for (const each of this.#commands) {
      if ((uses.get(each.command.name) ?? 0) > 1) each.refuse("multiple updates for this ref");
    }
  }

  #refuseRestIfAtomic(): void {
    if (this.#isAtomic && this.#open().length < this.#commands.length) this.#refuseAll("atomic push failure");
  }

  #push(): Push {
    return {
      repository: this.#quarantine.view,
      commands: this.#open().map(({ command }) => command),
      pushOptions: this.#request.pushOptions.map((each) => Buffer.from(each, "latin1").toString("utf8")),
      environment: this.#quarantine.environment,
      tell: this.#parts.tell,
    };
  }

  async #updateHook(command: RefCommand): Promise<string | undefined> {
    return this.#hook("update", async () => this.#options.update?.(this.#push(), command));
  }

  async #hook(name: string, action: () => Promise<HookResult>): Promise<string | undefined> {
    try {
      return (await action()) ?? undefined;
    } catch (error) {
      this.#parts.onError(error);
      return `the hook ${name} failed`;
    }
  }

  async #checkConnected(): Promise<void> {
    const { signal, reachable } = this.#parts;
    const created = this.#open().filter(({ command }) => command.newOid !== undefined);
    if (created.length === 0) return;
    const { view, pack } = this.#quarantine;
    const known = await reachable();
    const shallows = new Set(this.#request.shallows);
    const walk = new ConnectivityWalk({ objects: view.objects, pack, known, shallows });
    for (const each of created) {
      const { name, newOid } = each.command;
      try {
        await walk.check(newOid!, name.startsWith("refs/heads/") ? COMMIT : undefined, signal);
      } catch (error) {
        if (!(error instanceof GitStoreError)) throw error;
        const isTheirs =
          ["missing_object", "ref_conflict"].includes(error.code) || PACK_FAULTS.has(error.code);
        if (!isTheirs) this.#parts.onError(error);
        const reason = isTheirs ? error.message : "the objects could not be checked";
        each.refuse(error.code === "missing_object" ? "missing necessary objects" : reason);
      }
    }
  }

  /** The rules of `receive.deny…` (git-config). */
  async #policy({ name, oldOid, newOid }: RefCommand): Promise<string | undefined> {
    const { repository, signal } = this.#parts;
    const head = (this.#head ??= await repository.head());
    const isHead = "ref" in head && head.ref === name;
    if (
      isHead &&
      !repository.isBare &&
      newOid !== undefined &&
      !this.#isAllowed("receive.denycurrentbranch")
    ) {
      return "branch is currently checked out";
    }
    if (isHead && newOid === undefined && !this.#isAllowed("receive.denydeletecurrent")) {
      return "deletion of the current branch prohibited";
    }
    if (!name.startsWith("refs/heads/") || oldOid === undefined) return undefined;
    if (newOid === undefined) {
      const isDenied = this.#options.denyDeletes ?? this.#isTrue("receive.denydeletes");
      return isDenied ? "deletion prohibited" : undefined;
    }
    if (!(this.#options.denyNonFastForwards ?? this.#isTrue("receive.denynonfastforwards"))) return undefined;
    // The client names the old value. A walk from one that is not true would cost a history each time.
    this.#refs ??= await repository.refs();
    if (this.#refs.get(name)?.oid !== oldOid) return "the ref has changed. Fetch first";
    const isForward = await finishInSlices(isAncestor(this.#quarantine.view, oldOid, newOid), signal);
    return isForward ? undefined : "non-fast-forward";
  }

  #isTrue(key: string): boolean {
    return isTrue(this.#parts.repository.config(key));
  }

  /** Whether the configuration allows what is refused by default. */
  #isAllowed(key: string): boolean {
    const value = this.#parts.repository.config(key)?.toLowerCase() ?? "";
    return ["ignore", "warn", "false", "no", "off", "0"].includes(value);
  }

  async #updateRefs(): Promise<void> {
    const open = this.#open();
    if (open.length === 0) return;
    const { repository } = this.#parts;
    const { identity } = this.#options;
    const updates = open.map(({ command }) => ({
      name: command.name,
      oldOid: command.oldOid ?? null,
      newOid: command.newOid,
    }));
    const options = { message: "push", ...(identity === undefined ? {} : { identity }) };
    try {
      await this.#quarantine.migrate();
      repository.objects.refresh();
      if (this.#isAtomic) {
        await updateRefs(repository, updates, options);
        return;
      }
      const failures = await updateEachRef(repository, updates, options);
      for (const each of open) {
        const error = failures.get(each.command.name);
        if (error !== undefined) each.refuse(this.#refReason(error));
      }
    } catch (error) {
      this.#refuseAll(this.#refReason(error));
    }
  }

  /** The reason for the client, without a path of the server. */
  #refReason(error: unknown): string {
    if (error instanceof GitStoreError) {
      const { code, details, message } = error;
      if (code === "locked") return "failed to update ref: another process holds its lock. Try again";
      if (code === "ref_conflict" && details.path !== undefined) {
        return "failed to update ref: a ref has the name of one of its folders";
      }
      if (code === "ref_conflict" || code === "ref_changed" || code === "bad_ref_name") return message;
    }
    this.#parts.onError(error);
    return "failed to update ref";
  }
}

/** Text as the protocol package has it: one character for each byte. */
function wire(text: string): string {
  return Buffer.from(messageText(text)).toString("latin1");
}

/** Whether a commit is in the history of another. */
function* isAncestor({ objects, format }: Repository, ancestor: Oid, tip: Oid): Steps<boolean> {
  const seen = new Set<Oid>([tip]);
  const queue = [tip];
  for (let at = 0; at < queue.length; at++) {
    if (at % 128 === 127) yield;
    const oid = queue[at]!;
    if (oid === ancestor) return true;
    if (!objects.has(oid) || objects.info(oid).type !== "commit") continue;
    for (const parent of parseCommit(objects.read(oid).content, format).parents) {
      if (seen.has(parent)) continue;
      seen.add(parent);
      queue.push(parent);
    }
  }
  return false;
}
