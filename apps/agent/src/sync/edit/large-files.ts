import type { EditMap, EditValue } from "@devplat/document-edit";
import { EditThread } from "./edit-thread.ts";
import { bufferOf, type EditJob } from "./edit-job.ts";
import {
  mergePieces,
  type MergeContext,
  type MergedFile,
  type Piece,
  type PieceOutcome,
} from "./file-bytes.ts";
import { unpackError } from "./packed-error.ts";
import { previewText, type ChangedFile } from "./preview-text.ts";

/** Bytes of a file, or characters of new content, above which a thread works on it. Up to here it takes less than starting one. */
const LARGE = 64 * 1024;

/** One for the whole program: the memory of a second one would come on top. */
const THREAD = new EditThread();

/**
 * {@link mergePieces}, of a large file in a thread. A thread that fails is a failure of every piece.
 * @throws the reason of the signal
 */
export async function mergeFile(
  existing: Buffer | undefined,
  pieces: readonly Piece[],
  context: MergeContext,
  signal?: AbortSignal,
  thread: EditThread = THREAD,
): Promise<MergedFile> {
  const { format, wholeFile, others } = context;
  const isLarge = isLargeFile(existing) || pieces.some(({ content }) => isLargeContent(content));
  if (!isLarge || format.name === "text") return mergePieces(existing, pieces, context);
  const isOurs = wholeFile && existing !== undefined && context.isOurs(existing);
  const job = {
    kind: "merge",
    existing,
    pieces,
    format: keyOf(format),
    context: { wholeFile, others, isOurs },
  } as const satisfies EditJob;
  try {
    const { content, outcomes } = await thread.do(job, signal);
    const unpacked = [...outcomes].map(([rule, outcome]): [string, PieceOutcome] => [
      rule,
      outcome.kind === "failed" ? { kind: outcome.kind, error: unpackError(outcome.error) } : outcome,
    ]);
    return {
      content: content instanceof Uint8Array ? bufferOf(content) : content,
      outcomes: new Map(unpacked),
    };
  } catch (error) {
    if (signal?.aborted === true) throw error;
    return {
      content: undefined,
      outcomes: new Map(pieces.map(({ rule }) => [rule, { kind: "failed", error }])),
    };
  }
}

/**
 * {@link previewText}, of a large file in a thread.
 * @throws AgentError `edit_failed`; the reason of the signal; what previewText throws
 */
export async function diffOf(
  file: ChangedFile,
  reveal: boolean,
  signal?: AbortSignal,
  thread: EditThread = THREAD,
): Promise<string> {
  const { path, format, existing, next } = file;
  const isLarge = isLargeFile(existing) || (next instanceof Buffer && isLargeFile(next));
  if (!isLarge || (format.name === "text" && !reveal)) return previewText(file, reveal);
  return await thread.do({ kind: "diff", path, format: keyOf(format), existing, next, reveal }, signal);
}

function keyOf({ name, dialect }: ChangedFile["format"]): EditJob["format"] {
  return { name, dialect };
}

function isLargeFile(content: Buffer | undefined): boolean {
  return content !== undefined && content.length > LARGE;
}

function isLargeContent(content: EditMap | undefined): boolean {
  return content !== undefined && lengthOf(content) > LARGE;
}

/** Characters of keys and values, with one more for each. */
function lengthOf(value: EditValue): number {
  if (typeof value === "string") return value.length + 1;
  if (value instanceof Map) {
    let length = 1;
    for (const [key, inner] of value as EditMap) length += key.length + lengthOf(inner);
    return length;
  }
  if (Array.isArray(value)) {
    return (value as readonly EditValue[]).reduce((length: number, item) => length + lengthOf(item), 1);
  }
  return 1;
}
