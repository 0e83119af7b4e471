import { assemblePreview, type Host } from "../assemble.ts";
import type { LoadedConfig } from "../config/load.ts";
import { maskedDiff } from "../sync/diff.ts";
import type { PreviewedFile } from "../sync/engine.ts";
import { untilStopped } from "./signals.ts";

/**
 * Prints what a cycle would change, every value masked, and leaves no trace: no file, folder, state, lock, login or
 * command. Exit code 1 without a valid token, and if a rule would fail.
 */
export async function dryRun(host: Host, loaded: LoadedConfig): Promise<number> {
  const parts = await assemblePreview(host, loaded);
  const stop = untilStopped();
  try {
    await parts.signIn.ensure(stop.signal);
    const { files, failures, missing } = await parts.engine.preview(stop.signal);
    let changes = 0;
    for (const file of files) {
      const shown = describe(file);
      if (shown !== "") changes += 1;
      process.stdout.write(shown);
    }
    for (const [rule, message] of missing) process.stdout.write(`${rule}: ${message}\n`);
    for (const [rule, message] of failures) process.stderr.write(`${rule}: ${message}\n`);
    process.stdout.write(`${changes} files would change; nothing was written\n`);
    return failures.size === 0 ? 0 : 1;
  } finally {
    stop.release();
    await parts.close();
  }
}

function describe({ path, format, existing, next }: PreviewedFile): string {
  if (next === undefined || (next !== "remove" && existing?.equals(next) === true)) return "";
  if (format.name === "text") return `${path}: ${sizeOf(existing)} -> ${sizeOf(next)}\n`;
  const masked = (content: Buffer | "remove" | undefined): { text: string | undefined; shown: string } => {
    if (content === undefined || content === "remove") return { text: undefined, shown: "" };
    const text = content.toString();
    return { text, shown: format.mask(text) };
  };
  return maskedDiff(path, masked(existing), masked(next));
}

/** A text file may be one secret from end to end: only its size is shown. */
function sizeOf(content: Buffer | "remove" | undefined): string {
  return content === undefined || content === "remove" ? "no file" : `${content.length} bytes`;
}
