import { BRAND } from "../brand.ts";
import type { CommandSpec, OptionSpecs } from "./command.ts";
import { GLOBAL_OPTIONS } from "./global-options.ts";

/** The help of the program, of a group of commands, or of one command. */
export function helpText(
  commands: readonly CommandSpec[],
  command: CommandSpec | undefined,
  group?: string,
): string {
  if (command !== undefined) return commandHelp(command);
  const shown = group === undefined ? commands : commands.filter(({ name }) => name.startsWith(`${group} `));
  return [
    `Usage: ${BRAND.command} [flags] <command>`,
    "",
    "Keeps local files in step with the credentials of a secrets store.",
    "",
    "Commands:",
    ...aligned(shown.map(({ name, summary }) => [name, summary])),
    "",
    "Flags of every command:",
    ...optionLines(GLOBAL_OPTIONS),
    "",
    `'${BRAND.command} <command> --help' tells more.`,
    "",
  ].join("\n");
}

function commandHelp(command: CommandSpec): string {
  const usage = command.usage === undefined ? "" : ` ${command.usage}`;
  const own = command.options ?? {};
  const ownLines = Object.keys(own).length === 0 ? [] : ["Options:", ...optionLines(own), ""];
  return [
    `Usage: ${BRAND.command} ${command.name}${usage}`,
    "",
    command.summary,
    "",
    ...ownLines,
    "Flags of every command:",
    ...optionLines(GLOBAL_OPTIONS),
    "",
  ].join("\n");
}

function optionLines(options: OptionSpecs): string[] {
  return aligned(
    Object.entries(options).map(([name, { value, description }]) => [
      `--${name}${value === undefined ? "" : ` ${value}`}`,
      description,
    ]),
  );
}

function aligned(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
