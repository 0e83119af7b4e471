import type { CommandEntry, CommandTable, OptionSpec, OptionSpecs } from "./command.ts";
import { HELP_OPTION } from "./options.ts";

/** Shells that {@link completionScript} supports. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** A script that completes commands, options, the fixed values of options, and arguments that the program lists, in a shell: `source <(agent completion bash)`. */
export function completionScript(table: CommandTable, shell: (typeof SHELLS)[number]): string {
  return SCRIPTS[shell](table);
}

/**
 * The script as a file of a package, in the folder from which the shell loads completions when they are first asked for.
 * zsh takes such a file for the function itself: the first completion comes from the end of the file.
 */
export function completionFile(table: CommandTable, shell: (typeof SHELLS)[number]): string {
  const script = completionScript(table, shell);
  const { name } = table;
  return shell === "zsh" ? `#compdef ${name}\n${script}_bash_complete -o filenames -F _${name}\n` : script;
}

const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], (table: CommandTable) => string>> = {
  bash: bashScript,
  zsh: (table) => `autoload -U +X bashcompinit && bashcompinit\n${bashScript(table)}`,
  fish: fishScript,
};

/** Words that a command takes as its first argument, if its usage lists them as in `bash|zsh|fish`. */
function fixedWords({ usage = "" }: CommandEntry): readonly string[] {
  const [first = ""] = usage.split(" ");
  return /^[\w-]+(?:\|[\w-]+)+$/.test(first) ? first.split("|") : [];
}

function optionWords(options: OptionSpecs): string[] {
  return Object.keys(options).map((name) => `--${name}`);
}

/** Completions by the words of a command so far: its next words, or its options and fixed words. */
function choices({ commands, globalOptions }: CommandTable): Map<string, readonly string[]> {
  const after = new Map<string, Set<string>>();
  const add = (prefix: string, words: readonly string[]): void => {
    const known = after.get(prefix) ?? new Set<string>();
    for (const word of words) known.add(word);
    after.set(prefix, known);
  };
  for (const command of commands) {
    const words = command.name.split(" ");
    words.forEach((word, at) => add(words.slice(0, at).join(" "), [word]));
    const globals = command.argumentsAsGiven === true ? {} : globalOptions;
    const options = { ...command.options, ...globals, ...HELP_OPTION };
    add(command.name, [...fixedWords(command), ...optionWords(options)]);
  }
  return new Map([...after].map(([prefix, words]) => [prefix, [...words]]));
}

/** Options that take a value, in their long and short forms: `--config`, `-c`. */
function valueOptions({ commands, globalOptions }: CommandTable): Map<string, OptionSpec> {
  const specs = [globalOptions, ...commands.map(({ options = {} }) => options)].flatMap((options) =>
    Object.entries(options),
  );
  return new Map(
    specs
      .filter(([, { type }]) => type !== "boolean")
      .flatMap(([name, spec]) => [
        [`--${name}`, spec] as const,
        ...(spec.short === undefined ? [] : [[`-${spec.short}`, spec] as const]),
      ]),
  );
}

function bashScript(table: CommandTable): string {
  const { name } = table;
  const known = [...choices(table)];
  const printed = new Map(table.commands.map((command) => [command.name, command.argumentsFrom]));
  const cases = known.map(([prefix, words]) => {
    const source = printed.get(prefix);
    const more = source === undefined ? "" : ` $(${name} ${source} 2>/dev/null | sed 's/  .*//')`;
    return `    "${prefix}") words="${words.join(" ")}${more}" ;;`;
  });
  const prefixes = known.map(([prefix]) => `"${prefix}"`).filter((prefix) => prefix !== '""');
  const withValue = [...valueOptions(table)];
  const values = withValue.flatMap(([option, { choices: fixed }]) =>
    fixed === undefined ? [] : [`    ${option}) words="${fixed.join(" ")}" ;;`],
  );
  return `_${name}() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" before="" prefix="" word words="" i
  # Bash splits --option=value into three words.
  if [ "$cur" = "=" ]; then cur=""; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if [ "$word" = "=" ]; then continue; fi
    if [ -n "$before" ]; then before=""; continue; fi
    case "$word" in
      ${withValue.map(([option]) => option).join(" | ") || "--"}) before="$word"; continue ;;
      -*) continue ;;
    esac
    # Any other word is an argument.
    case "\${prefix:+$prefix }$word" in
      ${prefixes.join(" | ")}) prefix="\${prefix:+$prefix }$word" ;;
    esac
  done
  case "$before" in
    "") case "$prefix" in
${cases.join("\n")}
    esac ;;
${values.join("\n")}
  esac
  if [ -z "$words" ]; then COMPREPLY=($(compgen -f -- "$cur"))
  else COMPREPLY=($(compgen -W "$words" -- "$cur")); fi
}
complete -o filenames -F _${name} ${name}
`;
}

function fishScript({ name: program, commands, globalOptions }: CommandTable): string {
  const quoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const line = (...parts: readonly string[]): string => `complete -c ${program} ${parts.join(" ")}`;
  const optionParts = (name: string, { type, short, description, choices: fixed }: OptionSpec): string[] => [
    `-l ${name}`,
    ...(short === undefined ? [] : [`-s ${short}`]),
    // Without fixed words, the value may be a file.
    ...(type === "boolean"
      ? []
      : fixed === undefined
        ? ["-r", "-F"]
        : ["-x", `-a ${quoted(fixed.join(" "))}`]),
    `-d ${quoted(description)}`,
  ];
  // fish's own condition reads the value of an option as a command.
  const firsts = [...new Set(commands.map(({ name }) => name.split(" ", 1)[0] ?? ""))];
  const isFirst = quoted(`not __fish_seen_subcommand_from ${firsts.join(" ")}`);
  const lines = commands.flatMap((command) => {
    const { summary, options = {}, argumentsFrom } = command;
    const words = command.name.split(" ");
    const [first = "", second] = words;
    const siblings = commands.flatMap(({ name }) =>
      name.startsWith(`${first} `) ? name.split(" ").slice(1) : [],
    );
    const isHere = quoted(words.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and "));
    const own =
      second === undefined
        ? [line(`-f -n ${isFirst}`, `-a ${first}`, `-d ${quoted(summary)}`)]
        : [
            line(`-f -n ${isFirst}`, `-a ${first}`),
            line(
              `-f -n '__fish_seen_subcommand_from ${first}; and not __fish_seen_subcommand_from ${siblings.join(" ")}'`,
              `-a ${second}`,
              `-d ${quoted(summary)}`,
            ),
          ];
    const fixed = fixedWords(command);
    return [
      ...own,
      ...(fixed.length === 0 ? [] : [line(`-f -n ${isHere}`, `-a ${quoted(fixed.join(" "))}`)]),
      ...(argumentsFrom === undefined
        ? []
        : [
            line(
              `-n ${isHere}`,
              `-a ${quoted(`(${program} ${argumentsFrom} 2>/dev/null | string replace -r '  +' \\t)`)}`,
            ),
          ]),
      ...Object.entries(options).map(([option, spec]) => line(`-n ${isHere}`, ...optionParts(option, spec))),
    ];
  });
  const asGiven = commands.filter(({ argumentsAsGiven }) => argumentsAsGiven === true);
  const where =
    asGiven.length === 0
      ? []
      : [`-n ${quoted(`not __fish_seen_subcommand_from ${asGiven.map(({ name }) => name).join(" ")}`)}`];
  const globals = Object.entries(globalOptions).map(([option, spec]) =>
    line(...where, ...optionParts(option, spec)),
  );
  const help = Object.entries(HELP_OPTION).map(([option, spec]) => line(...optionParts(option, spec)));
  return `${[...new Set([...lines, ...globals, ...help])].join("\n")}\n`;
}
