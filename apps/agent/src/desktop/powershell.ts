import type { Command } from "./program.ts";

/**
 * A run of Windows PowerShell. The script has the words as `$words`. They come by standard input, so they are never part of
 * the script, and no list of processes shows them.
 */
export function powershell(
  script: string,
  words: Readonly<Record<string, string>>,
): { readonly command: Command; readonly input: string } {
  const read =
    "$words = [Text.Encoding]::UTF8.GetString([Convert]::FromBase64String([Console]::In.ReadToEnd())) | ConvertFrom-Json\n";
  const encoded = Buffer.from(read + script, "utf16le").toString("base64");
  return {
    command: ["powershell.exe", "-NoProfile", "-NonInteractive", "-EncodedCommand", encoded],
    input: Buffer.from(JSON.stringify(words)).toString("base64"),
  };
}
