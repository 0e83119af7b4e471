import { assemblePreview, type Host } from "../assemble.ts";
import type { LoadedConfig } from "../config/load.ts";
import { AgentError } from "../errors.ts";
import { previewText } from "../sync/preview-text.ts";
import { untilStopped } from "./signals.ts";

/**
 * Prints what a cycle would change, every value masked, and leaves no trace: no file, folder, state, lock, login or
 * command. Exit code 1 without a valid token, and if a rule would fail.
 *
 * @param reveal show values: on a terminal only, so that they end in no log
 * @param only the rule whose file is shown. Default: all
 */
export async function dryRun(
  host: Host,
  loaded: LoadedConfig,
  reveal: boolean,
  only?: string,
): Promise<number> {
  if (reveal && !process.stdout.isTTY) {
    throw new AgentError("usage", "--reveal shows values on a terminal only, and this is none");
  }
  const parts = await assemblePreview(host, loaded);
  const stop = untilStopped();
  try {
    await parts.signIn.ensure(stop.signal);
    const { files, failures, missing } = await parts.engine.preview(stop.signal);
    let changes = 0;
    for (const file of files) {
      if (only !== undefined && !file.rules.includes(only)) continue;
      const shown = previewText(file, reveal);
      if (shown !== "") changes += 1;
      process.stdout.write(shown);
    }
    const concerned = ([rule]: readonly [string, string]): boolean => only === undefined || rule === only;
    const failed = [...failures].filter(concerned);
    for (const [rule, message] of [...missing].filter(concerned))
      process.stdout.write(`${rule}: ${message}\n`);
    for (const [rule, message] of failed) process.stderr.write(`${rule}: ${message}\n`);
    process.stdout.write(`${changes} files would change; nothing was written\n`);
    return failed.length === 0 ? 0 : 1;
  } finally {
    stop.release();
    await parts.close();
  }
}
