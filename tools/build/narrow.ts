import { readFile, writeFile } from "node:fs/promises";

/**
 * Writes characters beyond ASCII as escapes. One alone makes Node give V8 the whole text of a single executable twice as wide, which
 * takes some milliseconds of each start, and memory for as long as the program runs. esbuild escapes them everywhere but in
 * comments, in regular expressions and in tagged templates, where `html` reads the escapes.
 */
export async function narrow(file: string): Promise<void> {
  const text = await readFile(file, "utf8");
  await writeFile(
    file,
    text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}
