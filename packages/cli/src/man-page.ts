import type { CommandEntry, CommandTable, OptionSpecs } from "./command.ts";
import { HELP_OPTION } from "./options.ts";

/** Parts of a manual page that the table of commands does not hold. */
export interface ManPageParts {
  /** Version of the program, for the footer. */
  readonly version: string;
  /** Day of the release as `YYYY-MM-DD`, for the footer. */
  readonly date: string;
  /** Files that the program reads and writes, each with its purpose. */
  readonly files: readonly (readonly [path: string, purpose: string])[];
  /** Other manual pages and documents. */
  readonly seeAlso: readonly string[];
}

/**
 * Manual page of a program, for section 1: source text for `man`.
 *
 * @param table commands and options are shown as in the help
 */
export function manPage(table: CommandTable, { version, date, files, seeAlso }: ManPageParts): string {
  const { name, description, commands, globalOptions, notes } = table;
  const asGiven = commands.flatMap((command) =>
    command.argumentsAsGiven === true ? [`${name} ${command.name}`] : [],
  );
  const title = [name.toUpperCase(), "1", date, `${name} ${version}`, "User Commands"].map(quoted);
  return [
    `.TH ${title.join(" ")}`,
    ".SH NAME",
    `${text(name)} \\- ${text(withoutPeriod(description))}`,
    ".SH SYNOPSIS",
    ".SY " + text(name),
    `.RI [ options ] " " command " [" arguments ]`,
    ".YS",
    ".SH DESCRIPTION",
    text(description),
    ".SH COMMANDS",
    ...commands.flatMap((command) => commandLines(name, command)),
    ".SH OPTIONS OF EVERY COMMAND",
    ...(asGiven.length === 0 ? [] : [text(`Only --help counts for: ${asGiven.join(", ")}.`)]),
    ...optionLines({ ...globalOptions, ...HELP_OPTION }),
    ...(notes === undefined ? [] : [".SH NOTES", ".nf", ...notes.split("\n").map(text), ".fi"]),
    ...(files.length === 0
      ? []
      : [".SH FILES", ...files.flatMap(([path, purpose]) => [".TP", `.I ${text(path)}`, text(purpose)])]),
    ...(seeAlso.length === 0 ? [] : [".SH SEE ALSO", text(seeAlso.join(", "))]),
    "",
  ].join("\n");
}

function commandLines(program: string, { name, usage, summary, options = {} }: CommandEntry): string[] {
  const call = [`\\fB${text(program)} ${text(name)}\\fR`, ...(usage === undefined ? [] : [text(usage)])];
  const own = optionLines(options);
  return [".TP", call.join(" "), text(summary), ...(own.length === 0 ? [] : [".RS", ...own, ".RE"])];
}

function optionLines(options: OptionSpecs): string[] {
  return Object.entries(options).flatMap(
    ([name, { short, value, description, choices, word, repeatable, required }]) => {
      const long = `\\fB${text(`--${name}`)}\\fR${value === undefined ? "" : ` \\fI${text(value)}\\fR`}`;
      const remarks = [
        description,
        choices === undefined ? "" : `One of: ${choices.join(", ")}.`,
        word === undefined ? "" : `Or: ${word}.`,
        repeatable === true ? "Repeatable." : "",
        required === true ? "Required." : "",
      ];
      return [
        ".TP",
        short === undefined ? long : `\\fB${text(`-${short}`)}\\fR, ${long}`,
        text(remarks.filter((part) => part !== "").join(" ")),
      ];
    },
  );
}

/** The description of a name section has no period: `apropos` prints it in a list. */
function withoutPeriod(description: string): string {
  return description.replace(/\.$/, "");
}

/** Argument of a macro. */
function quoted(argument: string): string {
  return `"${text(argument).replaceAll('"', "\\(dq")}"`;
}

/** Text that roff prints as it is: no escape, no request, hyphens that can be searched and copied, and characters in ASCII. */
function text(plain: string): string {
  return plain
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("'", "\\(aq")
    .replaceAll("`", "\\(ga")
    .replaceAll("^", "\\(ha")
    .replaceAll("~", "\\(ti")
    .replaceAll(/[^\0-\x7f]/gu, (character) => `\\[u${codeOf(character)}]`)
    .replaceAll(/^(?=\.)/gm, "\\&");
}

/** Code point of a character, as roff names it. */
function codeOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}
