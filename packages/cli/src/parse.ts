import { parseArgs } from "node:util";
import { suggest } from "@devplat/base/suggest";
import {
  UsageError,
  type CommandEntry,
  type CommandSpec,
  type CommandTable,
  type Invocation,
  type OptionSpec,
  type OptionSpecs,
  type OptionValue,
  type Program,
} from "./command.ts";
import { HELP_OPTION } from "./options.ts";

export type Parsed<Flags> =
  | {
      readonly kind: "help";
      readonly command: CommandSpec<Flags> | undefined;
      readonly group: string | undefined;
    }
  | {
      readonly kind: "command";
      readonly command: CommandSpec<Flags>;
      readonly invocation: Invocation<Flags>;
    };

/** Reads a command line. @throws UsageError */
export function parseCommandLine<Flags>(
  program: Program<Flags>,
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): Parsed<Flags> {
  const { words, unknown, rest } = splitCommand(program, args);
  const name = words.join(" ");
  const command = program.commands.find((candidate) => candidate.name === name);
  // Most programs support it.
  if (name === "" && args.length === 1 && args[0] === "--version") {
    return parseCommandLine(program, ["version"], environment);
  }
  if (command === undefined && unknown !== undefined) {
    if (name === "" && unknown === "help") {
      const about = args.toSpliced(args.indexOf("help"), 1);
      return parseCommandLine(program, [...about, "--help"], environment);
    }
    const unknownFirst = args
      .slice(0, args.indexOf(unknown))
      .find((arg) => isUnknownEverywhere(program, arg));
    if (unknownFirst !== undefined)
      throw unknownOption(program, unknownFirst, nameOf(unknownFirst), undefined);
    throw unknownCommand(program, name, unknown);
  }
  if (command?.argumentsAsGiven === true) {
    if (rest.length === 1 && ["--help", "-h"].includes(rest[0] ?? ""))
      return { kind: "help", command, group: undefined };
    const invocation = { positionals: rest, options: {}, flags: program.flags({}), environment };
    return { kind: "command", command, invocation };
  }
  const { options, positionals } = parseOptions(program, rest, command);
  if (command === undefined) {
    // Words after `--` are arguments.
    if (positionals.length > 0) throw new UsageError("no command before '--'");
    return { kind: "help", command: undefined, group: name === "" ? undefined : name };
  }
  if (options["help"] === true) return { kind: "help", command, group: undefined };
  const hasMore = program.commands.some((each) => each.name.startsWith(`${name} `));
  if (hasMore && positionals.length > 0) throw unknownCommand(program, name, positionals[0] ?? "");
  checkArguments(command, positionals);
  checkOptions(command, options);
  return {
    kind: "command",
    command,
    invocation: { positionals, options, flags: program.flags(options), environment },
  };
}

function checkArguments(command: CommandEntry, positionals: readonly string[]): void {
  const { min, max } = argumentCounts(command.usage);
  if (positionals.length < min) {
    throw new UsageError(`'${command.name}' needs: ${command.usage ?? ""}`, command.name);
  }
  if (positionals.length > max) {
    const limit = max === 0 ? "no arguments" : `at most ${max} argument${max === 1 ? "" : "s"}`;
    throw new UsageError(`'${command.name}' takes ${limit}`, command.name);
  }
}

/** Number of arguments that the usage of a command allows. */
function argumentCounts(usage = ""): { readonly min: number; readonly max: number } {
  const words = usage
    .replace(/^.* -- /, "")
    .replace(/ \(.*\)$/, "")
    .split(" ")
    .filter((word) => word !== "");
  const isUnlimited = words.some((word) => /(?:…|\.\.\.)$/.test(word));
  return {
    min: words.filter((word) => !word.startsWith("[")).length,
    max: isUnlimited ? Infinity : words.length,
  };
}

function checkOptions(command: CommandEntry, options: Readonly<Record<string, OptionValue>>): void {
  for (const [name, { required, excludes, value = "" }] of Object.entries(command.options ?? {})) {
    if (required && options[name] === undefined) {
      throw new UsageError(`'${command.name}' needs: --${name} ${value}`.trimEnd(), command.name);
    }
    if (excludes !== undefined && options[name] !== undefined && options[excludes] !== undefined) {
      throw new UsageError(`--${name} and --${excludes} exclude each other`, command.name);
    }
  }
}

/** @param group words before the unknown word, or "" */
function unknownCommand(program: CommandTable, group: string, word: string): UsageError {
  const later = group === "" ? program.notBuilt?.[word] : undefined;
  if (later !== undefined) return new UsageError(`'${word}' is not built yet in this version: ${later}`);
  const depth = group === "" ? 0 : group.split(" ").length;
  const known = program.commands
    .filter(({ name }) => group === "" || name.startsWith(`${group} `))
    .flatMap(({ name }) => name.split(" ").slice(depth, depth + 1));
  const advice = didYouMean(word, [...new Set(known)]);
  if (group === "") return new UsageError(`unknown command${nameable(word)}${advice}`);
  return new UsageError(`unknown command below '${group}'${nameable(word)}${advice}`, group);
}

/**
 * Splits the command's words from the rest. They are the first words that are not options. `unknown` is the first
 * word that continues no command, if the words before it are not a command either.
 */
function splitCommand(
  program: CommandTable,
  args: readonly string[],
): { words: string[]; unknown?: string; rest: string[] } {
  const words: string[] = [];
  const rest: string[] = [];
  const names = program.commands.map(({ name }) => name);
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    if (arg === "--") return { words, rest: [...rest, ...args.slice(i)] };
    if (arg.startsWith("-") && arg !== "-") {
      rest.push(arg);
      const spec = longOrShort(program.globalOptions, arg);
      if (spec !== undefined && spec.type !== "boolean" && args[i + 1] !== undefined)
        rest.push(args[++i] ?? "");
      continue;
    }
    const longer = [...words, arg].join(" ");
    if (!names.some((name) => name === longer || name.startsWith(`${longer} `))) {
      const left = [...rest, ...args.slice(i)];
      return names.includes(words.join(" ")) ? { words, rest: left } : { words, unknown: arg, rest: left };
    }
    words.push(arg);
    const goesOn = names.some((name) => name.startsWith(`${longer} `));
    if (!goesOn) return { words, rest: [...rest, ...args.slice(i + 1)] };
  }
  return { words, rest };
}

/** Whether neither the program nor any of its commands has this option. */
function isUnknownEverywhere({ commands, globalOptions }: CommandTable, arg: string): boolean {
  if (!arg.startsWith("--") || arg === "--") return false;
  const all = [globalOptions, HELP_OPTION, ...commands.map(({ options = {} }) => options)];
  return !all.some((options) => Object.hasOwn(options, nameOf(arg)));
}

function nameOf(option: string): string {
  return option.slice(2).split("=", 1)[0] ?? "";
}

function longOrShort(specs: OptionSpecs, arg: string): OptionSpec | undefined {
  if (arg.startsWith("--")) return specs[arg.slice(2)];
  return Object.values(specs).find(({ short }) => short === arg.slice(1));
}

function parseOptions(
  program: CommandTable,
  args: readonly string[],
  command: CommandEntry | undefined,
): { options: Record<string, OptionValue>; positionals: string[] } {
  const specs: OptionSpecs = { ...command?.options, ...program.globalOptions, ...HELP_OPTION };
  // Not strict: the messages of strict mode repeat arguments, which may be secrets.
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(specs).map(([name, { type, short }]) => [
        name,
        { type: type === "boolean" ? type : "string", ...(short === undefined ? {} : { short }) },
      ]),
    ),
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const options: Record<string, OptionValue> = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const { name } = token;
    const spec = specs[name];
    // parseArgs reads `-x` as `--x`: accept only a declared short form.
    if (spec === undefined || (!token.rawName.startsWith("--") && spec.short !== token.rawName.slice(1))) {
      throw unknownOption(program, token.rawName, name, command);
    }
    options[name] = valueOf(spec, name, token.value, options[name], command?.name);
  }
  return { options, positionals };
}

function valueOf(
  spec: OptionSpec,
  name: string,
  value: string | undefined,
  before: OptionValue | undefined,
  about: string | undefined,
): OptionValue {
  if (spec.type === "boolean") {
    if (value !== undefined) throw new UsageError(`--${name} takes no value`, about);
    return true;
  }
  if (value === undefined || value === "") throw new UsageError(`--${name} needs a value`, about);
  if (spec.type === "count") {
    if (value === spec.word) return value;
    if (/^\d{1,15}$/.test(value)) return Number(value);
    const word = spec.word === undefined ? "" : `, or '${spec.word}'`;
    throw new UsageError(`--${name} takes a whole number${word}`, about);
  }
  if (spec.choices !== undefined && !spec.choices.includes(value)) {
    throw new UsageError(`--${name} takes one of: ${spec.choices.join(", ")}`, about);
  }
  return spec.repeatable ? [...(Array.isArray(before) ? (before as string[]) : []), value] : value;
}

function unknownOption(
  program: CommandTable,
  raw: string,
  name: string,
  command: CommandEntry | undefined,
): UsageError {
  const isLong = raw.startsWith("--");
  const owners = program.commands.filter((candidate) => candidate.options?.[name] !== undefined);
  if (isLong && owners.length > 0) {
    const names = owners.map((owner) => `'${program.name} ${owner.name}'`).join(", ");
    return new UsageError(`--${name} is an option of ${names} only`);
  }
  const where = command === undefined ? "" : ` of '${program.name} ${command.name}'`;
  const known = Object.keys({ ...command?.options, ...program.globalOptions, ...HELP_OPTION });
  const advice = isLong ? didYouMean(name, known, "--") : "";
  return new UsageError(`unknown option${where}${nameable(raw)}${advice}`, command?.name);
}

/** Advice that names only a word of this program, because the typed word could be a value. */
function didYouMean(word: string, known: readonly string[], prefix = ""): string {
  const meant = suggest(word, known);
  return meant === undefined ? "" : `; did you mean '${prefix}${meant}'?`;
}

/** The word for a message, if it looks like a name and not like a value. */
function nameable(word: string): string {
  return /^-{0,2}[a-z][a-z-]{0,30}$/.test(word) ? `: ${word}` : "";
}
