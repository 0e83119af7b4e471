import { syncFolder, type Clock } from "@devplat/base";
import type { DocumentFormat, LeafPath } from "@devplat/document-edit";
import { readFile, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import type { Backups } from "./target/backups.ts";
import type { MergeContext, MergedFile, Piece } from "./edit/file-bytes.ts";
import type { InPlaceJournal } from "./target/in-place.ts";
import { mergeFile } from "./edit/large-files.ts";
import type { StateFile } from "./state.ts";
import type { ResolvedTarget } from "./target/target-policy.ts";
import { refuseTracked } from "./target/tracked.ts";
import { writeTarget, type WriteResult } from "./target/write-target.ts";

/** Everything that one file gets in one cycle. */
export interface FilePlan {
  /** As configured, for messages. */
  readonly path: string;
  readonly target: ResolvedTarget;
  readonly format: DocumentFormat;
  readonly wholeFile: boolean;
  readonly mode: number;
  readonly dirMode: number;
  /** See WriteRequest. */
  readonly tighten: boolean;
  readonly allowTracked: boolean;
  /** A rule of `remote_config` is among them. */
  readonly remote: boolean;
  readonly pieces: readonly Piece[];
  readonly others: ReadonlyMap<string, readonly LeafPath[]>;
}

export interface AppliedFile extends MergedFile {
  readonly changed: boolean;
}

/** Parts that writing a file needs. */
export interface ApplyParts {
  readonly state: StateFile;
  readonly journal: InPlaceJournal;
  readonly backups: Backups;
  readonly clock: Clock;
}

/**
 * Brings one file up to date.
 * @param signal ends the edit of a large file as long as nothing has been written
 * @param beforeChange called with the rules that change it, right before it is touched
 * @throws the reason of the signal; AgentError if nothing at all can be written there; faults of single pieces are in the outcomes
 */
export async function applyPlan(
  plan: FilePlan,
  parts: ApplyParts,
  signal: AbortSignal,
  beforeChange: (rules: readonly string[]) => Promise<void>,
): Promise<AppliedFile> {
  const { path, target, mode, dirMode } = plan;
  const { state, journal, backups, clock } = parts;
  const context = contextOf(plan, state);
  let merged: MergedFile = { content: undefined, outcomes: new Map() };
  let untouched = true;
  const merge = async (existing: Buffer | undefined): Promise<Buffer | undefined> => {
    // Once it has been written, it may lack what an editor has saved just then: that has to get back into it.
    merged = await mergeFile(existing, plan.pieces, context, untouched ? signal : undefined);
    return merged.content === "remove" ? undefined : merged.content;
  };
  const result = await writeTarget(
    {
      path,
      target,
      merge,
      mode,
      dirMode,
      tighten: plan.tighten,
      beforeChange: async (existing) => {
        untouched = false;
        if (!plan.allowTracked) await refuseTracked(path, target);
        const rules = changedRules(merged);
        if (existing !== undefined) {
          for (const rule of rules.filter((name) => !hasTouched(state, name, target.file))) {
            await backups.keepFirst(rule, { path: target.file, ...existing }, new Date(clock.now()));
          }
        }
        await beforeChange(rules);
      },
    },
    journal,
  );
  if (merged.content === "remove") {
    await beforeChange(changedRules(merged));
    await removeFile(target.file);
    delete state.document.files[target.file];
    return { ...merged, changed: true };
  }
  noteFile(state, target.file, result, merged);
  return { ...merged, changed: result.changed };
}

/** Result that {@link applyPlan} would have. Writes nothing. */
export async function previewPlan(
  plan: FilePlan,
  state: StateFile,
  signal: AbortSignal,
): Promise<{ merged: MergedFile; existing: Buffer | undefined }> {
  const { target } = plan;
  const existing = target.existing === undefined ? undefined : await readFile(target.file);
  const merged = await mergeFile(existing, plan.pieces, contextOf(plan, state), signal);
  const before = existing ?? Buffer.alloc(0);
  const changes = merged.content instanceof Buffer && !merged.content.equals(before);
  if (changes && !plan.allowTracked) await refuseTracked(plan.path, target);
  return { merged, existing };
}

function contextOf(plan: FilePlan, state: StateFile): MergeContext {
  const written = state.document.files[plan.target.file]?.content;
  return {
    format: plan.format,
    wholeFile: plan.wholeFile,
    others: plan.others,
    isOurs: (content) => written !== undefined && state.hmac(content) === written,
  };
}

function changedRules(merged: MergedFile): string[] {
  return [...merged.outcomes].flatMap(([rule, outcome]) =>
    outcome.kind === "applied" && outcome.changed ? [rule] : [],
  );
}

function hasTouched(state: StateFile, rule: string, file: string): boolean {
  const record = state.document.rules[rule];
  return record !== undefined && record.last_synced !== null && record.target.file === file;
}

async function removeFile(file: string): Promise<void> {
  await unlink(file);
  await syncFolder(dirname(file));
}

/** Remembers the file as it is now, if a piece has made it so. Otherwise another program may have written it. */
function noteFile(state: StateFile, file: string, result: WriteResult, merged: MergedFile): void {
  const applied = [...merged.outcomes.values()].some((outcome) => outcome.kind === "applied");
  const { files } = state.document;
  const known = files[file];
  if (result.content === undefined || result.signature === undefined) delete files[file];
  else if (applied || known !== undefined) {
    files[file] = {
      signature: result.signature,
      content: applied ? state.hmac(result.content) : (known?.content ?? ""),
      in_place: result.changed ? result.inPlace : (known?.in_place ?? false),
    };
  }
}
