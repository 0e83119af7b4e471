import type { Secret } from "@devplat/base";
import { firstThatWorks, type Command, type DesktopOutcome } from "./program.ts";

/** Longest text for the clipboard, in UTF-8 bytes: 64 KiB (mission, "Limits"). */
export const MAX_CLIPBOARD_BYTES = 64 * 1024;

/** Result of a copy. `unusable_text`: the text is empty, too long, has a NUL, or is not Unicode. */
export type CopyOutcome = "copied" | "unusable_text" | Exclude<DesktopOutcome, "done">;

/** Puts a text on a clipboard. */
export interface Clipboard {
  copy(text: Secret): Promise<CopyOutcome>;
}

/** The clipboard of this host's desktop, set by the program that the platform has for it. */
export class DesktopClipboard implements Clipboard {
  readonly #environment: NodeJS.ProcessEnv;
  readonly #platform: NodeJS.Platform;

  constructor(environment: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform) {
    this.#environment = environment;
    this.#platform = platform;
  }

  async copy(secret: Secret): Promise<CopyOutcome> {
    const text = secret.reveal();
    if (!isClipboardText(text)) return "unusable_text";
    // Windows' clip.exe takes other text than its code page only as UTF-16 with a byte order mark.
    const input = this.#platform === "win32" ? Buffer.from(`\uFEFF${text}`, "utf16le") : text;
    const commands = clipboardCommands(this.#environment, this.#platform);
    const outcome = await firstThatWorks(commands, { environment: this.#environment, input });
    return outcome === "done" ? "copied" : outcome;
  }
}

/** The clipboard's rules: not empty, at most 64 KiB, no NUL, Unicode. */
export function isClipboardText(text: string): boolean {
  const empty = text === "" || text.includes("\0") || !text.isWellFormed();
  return !empty && Buffer.byteLength(text) <= MAX_CLIPBOARD_BYTES;
}

/** The programs that could do it here, best first. They take the text from standard input. */
export function clipboardCommands(
  environment: NodeJS.ProcessEnv,
  platform: NodeJS.Platform,
): readonly Command[] {
  if (platform === "darwin") return [["pbcopy"]];
  if (platform === "win32") return [["clip.exe"]];
  const isSet = (name: string): boolean => (environment[name] ?? "") !== "";
  const commands: Command[] = [];
  if (isSet("WAYLAND_DISPLAY")) commands.push(["wl-copy"]);
  if (isSet("DISPLAY"))
    commands.push(["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]);
  return commands;
}
