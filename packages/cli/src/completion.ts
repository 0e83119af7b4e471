import type { CommandTable } from "./command.ts";
import { HELP_OPTION } from "./options.ts";

/** The shells that {@link completionScript} knows. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** A script that completes the program's commands and options in a shell: `source <(agent completion bash)`. */
export function completionScript(program: CommandTable, shell: (typeof SHELLS)[number]): string {
  return SCRIPTS[shell](program);
}

const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], (program: CommandTable) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Words that may follow these words: the next word of every command, or its options. */
function choices({ commands, globalOptions }: CommandTable): Map<string, string[]> {
  const after = new Map<string, Set<string>>();
  const add = (prefix: string, word: string): void => {
    const words = after.get(prefix) ?? new Set<string>();
    after.set(prefix, words.add(word));
  };
  const globals = Object.keys({ ...globalOptions, ...HELP_OPTION }).map((option) => `--${option}`);
  for (const { name, options = {} } of commands) {
    const words = name.split(" ");
    words.forEach((word, index) => add(words.slice(0, index).join(" "), word));
    for (const option of [...Object.keys(options).map((each) => `--${each}`), ...globals]) add(name, option);
  }
  return new Map([...after].map(([prefix, words]) => [prefix, [...words]]));
}

function bashScript(program: CommandTable): string {
  const cases = [...choices(program)].map(
    ([prefix, words]) => `    "${prefix}") words="${words.join(" ")}" ;;`,
  );
  return `_${program.name}() {
  local prefix="" word words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    case "$word" in -*) continue ;; esac
    if [ -n "$prefix" ]; then prefix="$prefix $word"; else prefix="$word"; fi
  done
  case "$prefix" in
${cases.join("\n")}
  esac
  if [ -z "$words" ]; then COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
  else COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}")); fi
}
complete -F _${program.name} ${program.name}
`;
}

function zshScript(program: CommandTable): string {
  return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(program)}`;
}

function fishScript({ name: program, commands, globalOptions }: CommandTable): string {
  const lines = commands.flatMap(({ name, summary, options = {} }) => {
    const [first = "", second] = name.split(" ");
    const text = summary.replaceAll("'", "\\'");
    const base = `complete -c ${program} -f`;
    const own =
      second === undefined
        ? [`${base} -n __fish_use_subcommand -a ${first} -d '${text}'`]
        : [
            `${base} -n __fish_use_subcommand -a ${first}`,
            `${base} -n '__fish_seen_subcommand_from ${first}' -a ${second} -d '${text}'`,
          ];
    const flags = Object.entries(options).map(
      ([option, { description }]) =>
        `${base} -n '__fish_seen_subcommand_from ${second ?? first}' -l ${option} -d '${description.replaceAll("'", "\\'")}'`,
    );
    return [...own, ...flags];
  });
  const globals = Object.entries({ ...globalOptions, ...HELP_OPTION }).map(
    ([option, { description }]) =>
      `complete -c ${program} -l ${option} -d '${description.replaceAll("'", "\\'")}'`,
  );
  return `${[...new Set([...lines, ...globals])].join("\n")}\n`;
}
