import { maskedDiff } from "./diff.ts";
import type { DocumentFormat } from "@devplat/document-edit";

/** A file with the content that it would get. */
export interface ChangedFile {
  readonly path: string;
  readonly format: DocumentFormat;
  readonly existing: Buffer | undefined;
  /** `remove` if it would be deleted; undefined if it stays. */
  readonly next: Buffer | "remove" | undefined;
}

/**
 * Changes that a cycle would make in one file, as a unified diff; empty for none.
 * @param reveal show values; else every value is masked, and of a text file only the size is told
 */
export function previewText({ path, format, existing, next }: ChangedFile, reveal: boolean): string {
  if (next === undefined || (next !== "remove" && existing?.equals(next) === true)) return "";
  if (format.name === "text" && !reveal) return `${path}: ${sizeOf(existing)} -> ${sizeOf(next)}\n`;
  const masked = (content: Buffer | "remove" | undefined): { text: string | undefined; shown: string } => {
    if (content === undefined || content === "remove") return { text: undefined, shown: "" };
    const text = content.toString();
    return { text, shown: reveal ? text : format.mask(text) };
  };
  return maskedDiff(path, masked(existing), masked(next));
}

/** A text file may be one secret from end to end: only its size is shown. */
function sizeOf(content: Buffer | "remove" | undefined): string {
  return content === undefined || content === "remove" ? "no file" : `${content.length} bytes`;
}
