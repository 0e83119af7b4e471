import { noteLine } from "@devplat/base/terminal";

/** Milliseconds between two lines, and before the first one. */
const NOTE_EVERY_MS = 2000;

/** Notes the number of rows on standard error, as long as the work takes long. */
export function progressNote(verb: "saved" | "read", isQuiet: boolean): (rows: number) => void {
  let next: number | undefined;
  return (rows) => {
    const now = performance.now();
    next ??= now + NOTE_EVERY_MS;
    if (isQuiet || now < next) return;
    next = now + NOTE_EVERY_MS;
    noteLine(`${verb} ${rows} rows so far`);
  };
}
