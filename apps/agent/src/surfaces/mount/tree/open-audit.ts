import { readlinkSync } from "node:fs";
import type { FileOpen, RenderedFileSettings } from "../channel/messages.ts";
import type { Timers } from "../timers.ts";
import { FileError } from "./file-error.ts";

/** Equal opens within this time are one line, in milliseconds. */
const WINDOW_MS = 10_000;
/** Maximum number of different opens that are counted at a time. Others are a line each. */
const MAX_COUNTED = 1000;

/** Reports which program opens which file, and refuses programs that a rule does not allow. */
export class OpenAudit {
  readonly #report: (open: FileOpen) => void;
  readonly #timers: Timers;
  /** Opens since the last line, by file and program. */
  readonly #counts = new Map<string, FileOpen>();

  constructor(report: (open: FileOpen) => void, timers: Timers) {
    this.#report = report;
    this.#timers = timers;
  }

  opened(path: string, pid: number): void {
    this.#note({ path, pid, program: programOf(pid), count: 1, refused: false });
  }

  /** @throws FileError EACCES unless the program may read the file */
  checkAllowed({ path, allow }: RenderedFileSettings, pid: number): void {
    if (allow === undefined) return;
    const program = programOf(pid);
    if (program !== undefined && allow.includes(program)) return;
    this.#note({ path, pid, program, count: 1, refused: true });
    throw new FileError("EACCES");
  }

  /** The first open is a line. Equal ones that follow are counted, and are one line at the end of the time. */
  #note(open: FileOpen): void {
    const key = `${open.refused ? 1 : 0} ${open.program ?? ""} ${open.path}`;
    const before = this.#counts.get(key);
    if (before !== undefined) {
      this.#counts.set(key, { ...open, count: before.count + 1 });
      return;
    }
    this.#report(open);
    if (this.#counts.size >= MAX_COUNTED) return;
    this.#counts.set(key, { ...open, count: 0 });
    this.#timers.after(WINDOW_MS, () => {
      const last = this.#counts.get(key);
      this.#counts.delete(key);
      if (last !== undefined && last.count > 0) this.#report(last);
    });
  }
}

/** The program of a process, as far as this user may know it. */
function programOf(pid: number): string | undefined {
  if (pid === 0) return undefined;
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return undefined;
  }
}
