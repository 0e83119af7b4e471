import type { CommandEntry, CommandTable, OptionSpecs } from "./command.ts";
import { HELP_OPTION } from "./options.ts";

/** Help of the program, of a group of commands, or of one command. */
export function helpText(program: CommandTable, command: CommandEntry | undefined, group?: string): string {
  if (command !== undefined) return commandHelp(program, command);
  const { commands, name, description, notes } = program;
  const shown =
    group === undefined
      ? commands
      : commands.filter((each) => each.name === group || each.name.startsWith(`${group} `));
  return [
    `Usage: ${name} [options] <command>`,
    "",
    description,
    "",
    "Commands:",
    ...aligned(shown.map((each) => [each.name, each.summary])),
    "",
    ...globalLines(program),
    `'${name} <command> --help' tells more.`,
    "",
    ...(notes === undefined || group !== undefined ? [] : [notes, ""]),
  ].join("\n");
}

function commandHelp(program: CommandTable, command: CommandEntry): string {
  const own = command.options ?? {};
  const ownLines = Object.keys(own).length === 0 ? [] : ["Options:", ...optionLines(own), ""];
  return [
    `Usage: ${[program.name, command.name, command.usage].filter((part) => part !== undefined).join(" ")}`,
    "",
    command.summary,
    "",
    ...ownLines,
    ...(command.argumentsAsGiven === true ? [] : globalLines(program)),
  ].join("\n");
}

function globalLines({ globalOptions }: CommandTable): string[] {
  return ["Options of every command:", ...optionLines({ ...globalOptions, ...HELP_OPTION }), ""];
}

function optionLines(options: OptionSpecs): string[] {
  return aligned(
    Object.entries(options).map(([name, { value, short, description, required, word, repeatable }]) => [
      `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`,
      [
        description,
        word === undefined ? "" : `Or: ${word}.`,
        repeatable ? "Repeatable." : "",
        required ? "Required." : "",
      ]
        .filter((part) => part !== "")
        .join(" "),
    ]),
  );
}

function aligned(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
