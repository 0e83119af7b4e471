import { visible, visibleJson } from "./visible.ts";

/**
 * Prints a line on standard output. It may hold text from elsewhere: line breaks and control characters in it are
 * shown, and do not reach the terminal.
 */
export function printLine(text: string): void {
  process.stdout.write(`${visible(text)}\n`);
}

/** Prints several lines, such as help or YAML. Line breaks in the text come from the program itself. */
export function printText(text: string): void {
  process.stdout.write(visibleLines(text));
}

/** @param indent spaces for each level; 0 prints one line. Default 2 */
export function printJson(value: unknown, indent = 2): void {
  process.stdout.write(`${visibleJson(value, indent)}\n`);
}

/** As {@link printLine}, on standard error. */
export function noteLine(text: string): void {
  process.stderr.write(`${visible(text)}\n`);
}

/** As {@link printText}, on standard error. */
export function noteText(text: string): void {
  process.stderr.write(visibleLines(text));
}

/**
 * Drops output after its reader has closed the pipe (`| head -1`). The command still runs to its end, and sets its
 * exit code. Any other write error, such as a full disk, fails the command, because output is missing.
 */
export function dropUnreadOutput(command: string): void {
  for (const stream of [process.stdout, process.stderr]) {
    let failed = false;
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (failed || error.code === "EPIPE") return;
      failed = true;
      process.once("exit", () => (process.exitCode ||= 1));
      if (stream === process.stdout)
        noteLine(`${command}: Cannot write the output: ${error.code ?? "unknown"}`);
    });
  }
}

/** Escapes every line, and keeps line breaks and tabs. */
function visibleLines(text: string): string {
  return text
    .split(/([\n\t])/)
    .map((part, index) => (index % 2 === 1 ? part : visible(part)))
    .join("");
}
