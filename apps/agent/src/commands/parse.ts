import { parseArgs } from "node:util";
import { suggest } from "@devplat/base/suggest";
import { BRAND } from "../brand.ts";
import type { CommandSpec, GlobalFlags, Invocation, OptionSpecs } from "./command.ts";
import { GLOBAL_OPTIONS } from "./global-options.ts";

/** Kept apart from the loggers that know them: `agent version` loads no logger. */
const LOG_LEVELS = ["debug", "info", "warn", "error"];
const LOG_FORMATS = ["auto", "text", "json"];

/** Commands that come in a later version, and what they are for. */
const NOT_BUILT: Readonly<Record<string, string>> = { ssh: "managed SSH forwards come later" };

/** The command line is wrong. The message never repeats an argument that could be a value. */
export class UsageError extends Error {
  /** Where the right form stands, in words. */
  readonly hint: string;

  /** @param about a command or group whose help tells more. Default: the list of commands does */
  constructor(message: string, about = "") {
    super(message);
    this.hint =
      about === ""
        ? `'${BRAND.command} --help' lists the commands.`
        : `'${BRAND.command} ${about} --help' tells more.`;
  }
}

export type Parsed =
  | { readonly kind: "help"; readonly command: CommandSpec | undefined; readonly group: string | undefined }
  | { readonly kind: "command"; readonly command: CommandSpec; readonly invocation: Invocation };

/** Reads a command line. @throws UsageError */
export function parseCommandLine(
  args: readonly string[],
  commands: readonly CommandSpec[],
  environment: NodeJS.ProcessEnv,
): Parsed {
  const { words, unknown, rest } = splitCommand(args, commands);
  const name = words.join(" ");
  const command = commands.find((candidate) => candidate.name === name);
  // What every other program answers as well.
  if (name === "" && args.length === 1 && args[0] === "--version") {
    return parseCommandLine(["version"], commands, environment);
  }
  if (command === undefined && unknown !== undefined) {
    if (name === "" && unknown === "help") {
      const about = args.toSpliced(args.indexOf("help"), 1);
      return parseCommandLine([...about, "--help"], commands, environment);
    }
    throw unknownCommand(name, unknown, commands);
  }
  const { options, positionals } = parseOptions(rest, command, commands);
  if (command === undefined) {
    // What stands behind `--` is no command.
    if (positionals.length > 0) throw unknownCommand(name, positionals[0] ?? "", commands);
    return { kind: "help", command: undefined, group: name === "" ? undefined : name };
  }
  if (options["help"] === true) return { kind: "help", command, group: undefined };
  const { min, max } = command.arguments ?? { min: 0, max: 0 };
  if (positionals.length < min) throw new UsageError(`'${name}' needs: ${command.usage ?? ""}`, name);
  if (positionals.length > max)
    throw new UsageError(
      `'${name}' takes ${max === 0 ? "no" : `at most ${max}`} argument${max === 1 ? "" : "s"}`,
      name,
    );
  return {
    kind: "command",
    command,
    invocation: { positionals, options, flags: globalFlags(options), environment, commands },
  };
}

/** @param group the words before it, or "" */
function unknownCommand(group: string, word: string, commands: readonly CommandSpec[]): UsageError {
  const later = group === "" ? NOT_BUILT[word] : undefined;
  if (later !== undefined) return new UsageError(`'${word}' is not built yet in this version: ${later}`);
  const depth = group === "" ? 0 : group.split(" ").length;
  const known = commands
    .filter(({ name }) => group === "" || name.startsWith(`${group} `))
    .flatMap(({ name }) => name.split(" ").slice(depth, depth + 1));
  const advice = didYouMean(word, [...new Set(known)]);
  if (group === "") return new UsageError(`unknown command${nameable(word)}${advice}`);
  return new UsageError(`unknown command below '${group}'${nameable(word)}${advice}`, group);
}

/**
 * The command's words may stand after global flags, and are the first words that are no flags. `unknown` is the first
 * word that does not go on with a command, where none is complete.
 */
function splitCommand(
  args: readonly string[],
  commands: readonly CommandSpec[],
): { words: string[]; unknown?: string; rest: string[] } {
  const words: string[] = [];
  const rest: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    if (arg === "--") return { words, rest: [...rest, ...args.slice(i)] };
    if (arg.startsWith("-") && arg !== "-") {
      rest.push(arg);
      const takesValue = GLOBAL_OPTIONS[arg.slice(2)]?.type === "string";
      if (takesValue && args[i + 1] !== undefined) rest.push(args[++i] ?? "");
      continue;
    }
    const longer = [...words, arg].join(" ");
    const known = commands.some(({ name }) => name === longer || name.startsWith(`${longer} `));
    if (!known) return { words, unknown: arg, rest: [...rest, ...args.slice(i)] };
    words.push(arg);
    if (commands.some(({ name }) => name === longer)) return { words, rest: [...rest, ...args.slice(i + 1)] };
  }
  return { words, rest };
}

function parseOptions(
  args: readonly string[],
  command: CommandSpec | undefined,
  commands: readonly CommandSpec[],
): { options: Record<string, string | boolean | readonly string[]>; positionals: string[] } {
  const specs: OptionSpecs = { ...command?.options, ...GLOBAL_OPTIONS };
  const short = { h: "help" } as Record<string, string>;
  // Not strict: its messages repeat arguments, which may be secrets.
  const types = Object.fromEntries(Object.entries(specs).map(([name, { type }]) => [name, { type }]));
  const { tokens } = parseArgs({
    args: [...args],
    options: types,
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const options: Record<string, string | boolean | readonly string[]> = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const name = token.rawName.startsWith("--") ? token.name : (short[token.name] ?? "");
    const spec = specs[name];
    if (spec === undefined) throw unknownOption(token.rawName, token.name, command, commands);
    if (spec.type === "boolean") {
      if (token.value !== undefined) throw new UsageError(`--${name} takes no value`);
      options[name] = true;
    } else {
      if (token.value === undefined || token.value === "") throw new UsageError(`--${name} needs a value`);
      const given = options[name];
      options[name] = spec.repeatable ? [...(Array.isArray(given) ? given : []), token.value] : token.value;
    }
  }
  return { options, positionals };
}

function unknownOption(
  raw: string,
  name: string,
  command: CommandSpec | undefined,
  commands: readonly CommandSpec[],
): UsageError {
  const owners = commands.filter((candidate) => candidate.options?.[name] !== undefined);
  if (raw.startsWith("--") && owners.length > 0) {
    const names = owners.map((owner) => `'${BRAND.command} ${owner.name}'`).join(", ");
    return new UsageError(`--${name} is an option of ${names} only`);
  }
  const where = command === undefined ? "" : ` of '${BRAND.command} ${command.name}'`;
  const known = Object.keys({ ...command?.options, ...GLOBAL_OPTIONS });
  const advice = raw.startsWith("--") ? didYouMean(name, known, "--") : "";
  return new UsageError(`unknown option${where}${nameable(raw)}${advice}`, command?.name);
}

function globalFlags(options: Readonly<Record<string, string | boolean | readonly string[]>>): GlobalFlags {
  const oneOf = (name: string, known: readonly string[], fallback: string): string => {
    const value = options[name] ?? fallback;
    if (typeof value === "string" && known.includes(value)) return value;
    throw new UsageError(`--${name} takes one of: ${known.join(", ")}`);
  };
  const config = options["config"];
  return {
    config: typeof config === "string" ? config : undefined,
    logLevel: oneOf("log-level", LOG_LEVELS, "info"),
    logFormat: oneOf("log-format", LOG_FORMATS, "auto"),
    dryRun: options["dry-run"] === true,
  };
}

/** Says only a word of this program, also where the word that was typed could be a value. */
function didYouMean(word: string, known: readonly string[], prefix = ""): string {
  const meant = suggest(word, known);
  return meant === undefined ? "" : `; did you mean '${prefix}${meant}'?`;
}

/** A word for a message if it looks like a name and not like a value. */
function nameable(word: string): string {
  return /^-{0,2}[a-z][a-z-]{0,30}$/.test(word) ? `: ${word}` : "";
}
