import {
  FORMAT_NAMES,
  INI_DIALECTS,
  type DocumentFormat,
  type EditMap,
  type LeafPath,
} from "@devplat/document-edit";
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { sharingFault } from "../config/schema.ts";
import { AgentError } from "../errors.ts";
import type { FilePlan } from "./apply.ts";
import type { Piece } from "./edit/file-bytes.ts";
import { isFileRule, ownsWholeFile, type FileRule, type Rule } from "../config/sections/rule.ts";
import type { RuleRecord, StateDocument, StateFile } from "./state.ts";
import { formatOf } from "./content/target-format.ts";
import type { ResolvedTarget, TargetPolicy } from "./target/target-policy.ts";

/** Work of one rule in this cycle. */
export interface Work {
  readonly rule: Rule;
  readonly record: RuleRecord;
  /** Rendered content. Undefined if its secret was removed. */
  readonly content: EditMap | undefined;
  /** Stamp of each secret that the content was made from. */
  readonly inputs: Readonly<Record<string, string>>;
  /** Version of the secret, where there is just one. */
  readonly version: number | null;
  /** Names of the environment variables that the template read. */
  readonly environment: readonly string[];
}

export interface FilePlans {
  readonly plans: readonly FilePlan[];
  /** Rules that cannot be carried out at all. */
  readonly failures: ReadonlyMap<string, unknown>;
  /** Names in the state that the configuration no longer has. Delete their records after the plans are applied. */
  readonly gone: readonly string[];
}

/**
 * Splits plans by how they may be written.
 * - `first`, one after the other: one file of each missing folder, so that the folder is made once, and files with
 *   several hard links, because two plans can write the same inode.
 * - `rest`, afterwards, in parallel.
 */
export function inWriteOrder(plans: readonly FilePlan[]): {
  readonly first: readonly FilePlan[];
  readonly rest: readonly FilePlan[];
} {
  const begun = new Set<string>();
  const { first = [], rest = [] } = Object.groupBy(plans, ({ target }) => {
    if ((target.existing?.nlink ?? 1) > 1) return "first";
    const folder = dirname(target.file);
    if (target.missingFolders.length === 0 || begun.has(folder)) return "rest";
    begun.add(folder);
    return "first";
  });
  return { first, rest };
}

interface Draft {
  readonly target: ResolvedTarget;
  readonly path: string;
  readonly format: DocumentFormat;
  readonly wholeFile: boolean;
  readonly rule: FileRule | undefined;
  readonly allowTracked: boolean;
  readonly piece: Piece;
}

/** Sorts the work of all rules by the file that it really ends in, and adds what removed rules leave to clean up. */
export async function planFiles(
  work: readonly Work[],
  rules: readonly Rule[],
  parts: { readonly state: StateFile; readonly targets: TargetPolicy },
): Promise<FilePlans> {
  const { document } = parts.state;
  const failures = new Map<string, unknown>();
  const drafts: Draft[] = [];
  const attempt = async (name: string, make: () => Promise<Draft | undefined>): Promise<void> => {
    try {
      const draft = await make();
      if (draft !== undefined) drafts.push(draft);
    } catch (error) {
      failures.set(name, error);
    }
  };
  for (const item of work) await attempt(item.rule.name, () => draftOf(item, document, parts.targets));
  const active = new Set(rules.filter((rule) => rule.enabled).map((rule) => rule.name));
  const gone = Object.keys(document.rules).filter((name) => !active.has(name));
  for (const name of gone) await attempt(name, () => cleanUp(name, document, parts.targets));
  const byFile = Map.groupBy(drafts, (draft) => draft.target.file);
  // Only rules without a draft: the draft of a rule says what the rule manages.
  const idle = new Set(active);
  for (const draft of drafts) idle.delete(draft.piece.rule);
  const plans = [...byFile.values()].map((group) => planOf(group, document, idle, failures));
  return { plans: plans.filter((plan) => plan.pieces.length > 0), failures, gone };
}

async function draftOf(
  item: Work,
  document: StateDocument,
  targets: TargetPolicy,
): Promise<Draft | undefined> {
  const { rule, record, content } = item;
  if (!isFileRule(rule)) return undefined;
  if (content === undefined && (rule.target.on_missing !== "remove" || record.managed.length === 0))
    return undefined;
  const target = await targets.resolve(rule.target.path, rule.remote);
  const moved = record.target.file !== "" && record.target.file !== target.file;
  if (moved) keepFormer(document, record, rule.name);
  const comparable = !moved && record.target.format === rule.target.format;
  const { merge, delete_nulls: deleteNulls, lists, on_remove: onRemove, overwrite } = rule.target;
  return {
    target,
    path: rule.target.path,
    format: formatOf(rule.target),
    wholeFile: ownsWholeFile(rule),
    rule,
    allowTracked: rule.target.allow_tracked,
    piece: {
      rule: rule.name,
      content,
      options: { merge, deleteNulls, lists },
      managedBefore: comparable ? record.managed : [],
      foundBefore: comparable ? record.found : [],
      clean: content === undefined || onRemove === "clean",
      overwrite,
    },
  };
}

/** The piece that removes the keys of a rule that is no longer configured; undefined if there is nothing to do. */
async function cleanUp(
  name: string,
  document: StateDocument,
  targets: TargetPolicy,
): Promise<Draft | undefined> {
  const record = document.rules[name];
  const format = FORMAT_NAMES.find((known) => known === record?.target.format);
  if (record === undefined || format === undefined || record.target.on_remove !== "clean") return undefined;
  if (record.managed.length === 0) return undefined;
  const { path, dialect: recorded } = record.target;
  const dialect = INI_DIALECTS.find((known) => known === recorded);
  const target = await targets.resolve(path);
  if (target.file !== record.target.file || target.existing === undefined) return undefined;
  return {
    target,
    path,
    format: formatOf({ path, format, dialect }),
    wholeFile: format === "text",
    rule: undefined,
    allowTracked: record.target.allow_tracked,
    piece: {
      rule: name,
      content: undefined,
      options: {},
      managedBefore: record.managed,
      foundBefore: record.found,
      clean: true,
      overwrite: false,
    },
  };
}

function planOf(
  group: readonly Draft[],
  document: StateDocument,
  idle: ReadonlySet<string>,
  failures: Map<string, unknown>,
): FilePlan {
  const lead = group.find((draft) => draft.rule !== undefined) ?? group[0];
  if (lead === undefined) throw new Error("a file without drafts");
  const pieces: Piece[] = [];
  for (const draft of group) {
    const fault = faultBeside(draft, lead);
    if (fault === undefined) pieces.push(draft.piece);
    else if (draft.rule !== undefined) failures.set(draft.piece.rule, fault);
  }
  const { file } = lead.target;
  const others = new Map<string, readonly LeafPath[]>();
  for (const [name, record] of Object.entries(document.rules)) {
    if (record.target.file === file && idle.has(name)) others.set(name, record.managed);
  }
  return {
    path: lead.path,
    target: lead.target,
    format: lead.format,
    wholeFile: lead.wholeFile,
    mode: lead.rule?.target.mode ?? 0o600,
    dirMode: lead.rule?.target.dir_mode ?? 0o700,
    tighten: group.some((draft) => draft.rule?.target.tighten === true),
    allowTracked: group.every((draft) => draft.allowTracked),
    remote: group.some((draft) => draft.rule?.remote === true),
    pieces,
    others,
  };
}

/** Two paths may lead to one file over links; the configuration's own check sees only equal paths. */
function faultBeside(draft: Draft, lead: Draft): AgentError | undefined {
  if (draft === lead) return undefined;
  if (draft.rule === undefined || lead.rule === undefined) {
    return draft.format.name === lead.format.name && draft.wholeFile === lead.wholeFile
      ? undefined
      : new AgentError("overlap", "the file has another format now");
  }
  const fault = sharingFault(draft.rule, lead.rule);
  return fault === undefined ? undefined : new AgentError("overlap", `rule '${lead.rule.name}' ${fault}`);
}

/** Keeps the record of a rule that goes to another file: its keys in the former one are cleaned up as if a rule had been removed. */
export function keepFormer(document: StateDocument, record: RuleRecord, rule: string): void {
  if (record.target.file !== "") document.rules[formerName(rule, record.target.file)] = record;
}

/** No rule's name has an `@`. */
function formerName(rule: string, file: string): string {
  return `${rule}@${createHash("sha256").update(file).digest("hex").slice(0, 12)}`;
}
