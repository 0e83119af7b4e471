import { documentFormat, type FormatName, type IniDialect } from "@devplat/document-edit";
import { mergePieces, type MergeContext, type MergedFile, type Piece } from "./file-bytes.ts";
import { packError, type PackedError } from "./packed-error.ts";
import { previewText, type ChangedFile } from "./preview-text.ts";

/** Name of a format for another thread. */
interface FormatKey {
  readonly name: FormatName;
  readonly dialect?: IniDialect | undefined;
}

/** Bytes as they cross threads: a Buffer arrives as this. */
type Bytes = Uint8Array;

/** One piece of work on a large file. */
export type EditJob =
  | {
      /** See {@link mergePieces}. */
      readonly kind: "merge";
      readonly existing: Bytes | undefined;
      readonly pieces: readonly Piece[];
      readonly format: FormatKey;
      readonly context: Pick<MergeContext, "wholeFile" | "others"> & { readonly isOurs: boolean };
    }
  | {
      /** See {@link previewText}. */
      readonly kind: "diff";
      readonly path: string;
      readonly existing: Bytes | undefined;
      readonly next: Bytes | "remove" | undefined;
      readonly format: FormatKey;
      readonly reveal: boolean;
    };

type Applied = Extract<
  MergedFile["outcomes"] extends ReadonlyMap<string, infer Outcome> ? Outcome : never,
  { kind: "applied" }
>;

/** Result of each kind of job. */
export interface EditResults {
  readonly merge: {
    readonly content: Bytes | "remove" | undefined;
    readonly outcomes: ReadonlyMap<
      string,
      Applied | { readonly kind: "failed"; readonly error: PackedError }
    >;
  };
  readonly diff: string;
}

/** Message of the thread about a job. */
export type EditAnswer =
  | { readonly result: EditResults[EditJob["kind"]] }
  | { readonly failure: PackedError };

/** Does a job, wherever it runs. */
export function doEditJob(job: EditJob): EditResults[EditJob["kind"]] {
  const format = documentFormat(job.format.name, job.format);
  if (job.kind === "diff") {
    const next = job.next instanceof Uint8Array ? bufferOf(job.next) : job.next;
    const file: ChangedFile = { path: job.path, format, existing: bufferOf(job.existing), next };
    return previewText(file, job.reveal);
  }
  const { wholeFile, others, isOurs } = job.context;
  const context = { format, wholeFile, others, isOurs: () => isOurs };
  const { content, outcomes } = mergePieces(bufferOf(job.existing), job.pieces, context);
  const packed = [...outcomes].map(
    ([rule, outcome]) =>
      [
        rule,
        outcome.kind === "failed" ? { kind: outcome.kind, error: packError(outcome.error) } : outcome,
      ] as const,
  );
  return { content, outcomes: new Map(packed) };
}

/** The same bytes as a Buffer. */
export function bufferOf<None extends undefined>(bytes: Bytes | None): Buffer | None {
  return bytes instanceof Uint8Array ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) : bytes;
}
