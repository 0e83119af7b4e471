import { BRAND } from "../brand.ts";
import { AgentError } from "../errors.ts";
import type { CommandSpec, RunCommand } from "./command.ts";
import { GLOBAL_OPTIONS } from "./global-options.ts";

/** Prints the completion script of a shell: `source <(agent completion bash)`. */
export const run: RunCommand = ({ positionals, commands }) => {
  const [shell = ""] = positionals;
  const script = SCRIPTS[shell];
  if (script === undefined) {
    throw new AgentError("usage", `completion is for: ${Object.keys(SCRIPTS).join(", ")}`);
  }
  process.stdout.write(script(commands));
  return Promise.resolve(0);
};

const SCRIPTS: Readonly<Record<string, (commands: readonly CommandSpec[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Words that may follow these words: the next word of every command, or its options. */
function choices(commands: readonly CommandSpec[]): Map<string, string[]> {
  const after = new Map<string, Set<string>>();
  const add = (prefix: string, word: string): void => {
    const words = after.get(prefix) ?? new Set<string>();
    after.set(prefix, words.add(word));
  };
  const globals = Object.keys(GLOBAL_OPTIONS).map((option) => `--${option}`);
  for (const { name, options = {} } of commands) {
    const words = name.split(" ");
    words.forEach((word, index) => add(words.slice(0, index).join(" "), word));
    for (const option of [...Object.keys(options).map((each) => `--${each}`), ...globals]) add(name, option);
  }
  return new Map([...after].map(([prefix, words]) => [prefix, [...words]]));
}

function bashScript(commands: readonly CommandSpec[]): string {
  const cases = [...choices(commands)].map(
    ([prefix, words]) => `    "${prefix}") words="${words.join(" ")}" ;;`,
  );
  return `_${BRAND.command}() {
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
complete -F _${BRAND.command} ${BRAND.command}
`;
}

function zshScript(commands: readonly CommandSpec[]): string {
  return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(commands)}`;
}

function fishScript(commands: readonly CommandSpec[]): string {
  const lines = commands.flatMap(({ name, summary, options = {} }) => {
    const [first = "", second] = name.split(" ");
    const text = summary.replaceAll("'", "\\'");
    const base = `complete -c ${BRAND.command} -f`;
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
  const globals = Object.entries(GLOBAL_OPTIONS).map(
    ([option, { description }]) =>
      `complete -c ${BRAND.command} -l ${option} -d '${description.replaceAll("'", "\\'")}'`,
  );
  return `${[...new Set([...lines, ...globals])].join("\n")}\n`;
}
