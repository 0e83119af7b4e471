import { devNull } from "node:os";

/**
 * The environment for every git that a test runs: this process's without any `GIT_*` variable, without the
 * machine's and the user's configuration, never asking on a terminal, and with a fixed author and committer.
 */
export function gitEnvironment(extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_"));
  return {
    ...Object.fromEntries(inherited),
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: devNull,
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "true",
    GIT_AUTHOR_NAME: "Ada Tester",
    GIT_AUTHOR_EMAIL: "ada@example.test",
    GIT_COMMITTER_NAME: "Ada Tester",
    GIT_COMMITTER_EMAIL: "ada@example.test",
    ...extra,
  };
}

/** Variables that give git these settings of its configuration, by key (git-config(1), "GIT_CONFIG_COUNT"). */
export function gitSettings(settings: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const entries = Object.entries(settings);
  const variables = entries.flatMap(([key, value], at) => [
    [`GIT_CONFIG_KEY_${at}`, key],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ]);
  return { ...Object.fromEntries(variables), GIT_CONFIG_COUNT: String(entries.length) };
}
