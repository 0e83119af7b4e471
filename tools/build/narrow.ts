import { readFile, writeFile } from "node:fs/promises";

/**
 * Writes characters beyond Latin-1 as escapes: one alone makes V8 keep the whole text twice as wide, for as long as the daemon
 * runs. esbuild escapes them everywhere but in regular expressions and in tagged templates, where `html` reads the escapes.
 */
export async function narrow(file: string): Promise<void> {
  const text = await readFile(file, "utf8");
  await writeFile(
    file,
    text.replace(/[\u0100-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}
