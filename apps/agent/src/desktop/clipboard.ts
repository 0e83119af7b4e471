import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Secret } from "@devplat/base";
import { BRAND } from "../brand.ts";

/** Longest text for the clipboard, in UTF-8 bytes: 64 KiB (mission, "Limits"). */
export const MAX_CLIPBOARD_BYTES = 64 * 1024;
/** A program that has not taken the text by then never will, in milliseconds. */
const TIMEOUT_MS = 8000;

/**
 * What came of it.
 * - `unusable_text`: empty, too long, with NUL, or not Unicode.
 * - `no_program`: nothing on this host can set a clipboard.
 * - `failed`: a program was there and did not take the text.
 */
export type CopyOutcome = "copied" | "unusable_text" | "no_program" | "failed";

/** What puts a text on a clipboard. */
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
    let outcome: CopyOutcome = "no_program";
    for (const command of clipboardCommands(this.#environment, this.#platform)) {
      const tried = await this.#run(command, text);
      if (tried === "copied") return tried;
      // A program that is there and fails says more than one that is not there.
      if (tried === "failed") outcome = "failed";
    }
    return outcome;
  }

  async #run([program, ...args]: Command, text: string): Promise<CopyOutcome> {
    const { [`${BRAND.environmentPrefix}_TOKEN`]: _token, ...env } = this.#environment;
    // Their output is not read: xclip and wl-copy leave a child behind that holds on to it.
    const child = spawn(program, args, { env, stdio: ["pipe", "ignore", "ignore"] });
    const timer = setTimeout(() => child.kill(), TIMEOUT_MS);
    // A program that ends before it has read everything breaks the pipe; its exit code tells.
    child.stdin.on("error", () => undefined);
    // Windows' clip.exe takes other text than its code page only as UTF-16 with a byte order mark.
    child.stdin.end(this.#platform === "win32" ? Buffer.from(`\uFEFF${text}`, "utf16le") : text);
    try {
      const [code] = (await once(child, "exit")) as [number | null];
      return code === 0 ? "copied" : "failed";
    } catch (error) {
      return error instanceof Error && "code" in error && error.code === "ENOENT" ? "no_program" : "failed";
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The clipboard's rules: not empty, at most 64 KiB, no NUL, Unicode. */
export function isClipboardText(text: string): boolean {
  const empty = text === "" || text.includes("\0") || !text.isWellFormed();
  return !empty && Buffer.byteLength(text) <= MAX_CLIPBOARD_BYTES;
}

type Command = readonly [program: string, ...args: string[]];

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
