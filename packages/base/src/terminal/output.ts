import { visible, visibleJson } from "./visible.ts";

/**
 * Output of a command. A line may hold text from elsewhere, as it came: nothing in it can end the line, or reach the
 * terminal as more than characters.
 */
export function printLine(text: string): void {
  process.stdout.write(`${visible(text)}\n`);
}

/** Output of several lines, whose line breaks are the program's own: help, YAML. */
export function printText(text: string): void {
  process.stdout.write(visibleLines(text));
}

/** @param indent blanks for each level; 0: on one line. Default 2 */
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
 * A reader of the output may go away before its end (`| head -1`). What is printed afterwards is dropped, the work goes on
 * to its end, and the exit code says how it went. A disk that is full fails the command: what was printed is not all.
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

/** Line breaks and tabs stay. */
function visibleLines(text: string): string {
  return text
    .split(/([\n\t])/)
    .map((part, index) => (index % 2 === 1 ? part : visible(part)))
    .join("");
}
