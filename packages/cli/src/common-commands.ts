import { printText } from "@devplat/base/terminal";
import {
  UsageError,
  type CommandEntry,
  type CommandSpec,
  type CommandTable,
  type OptionSpecs,
  type RunCommand,
} from "./command.ts";
import { flagOf } from "./options.ts";

/** The command `completion`. It prints a script that completes the program's commands in a shell. */
export function completionCommand<Flags>(table: () => CommandTable): CommandSpec<Flags> {
  return {
    name: "completion",
    usage: "bash|zsh|fish",
    summary: "Print a script that completes commands in a shell.",
    load: async () => {
      const { SHELLS, completionScript } = await import("./completion.ts");
      return ({ positionals: [word] }) => {
        const shell = SHELLS.find((known) => known === word);
        if (shell === undefined)
          throw new UsageError(`completion is for: ${SHELLS.join(", ")}`, "completion");
        printText(completionScript(table(), shell));
        return Promise.resolve(0);
      };
    },
  };
}

/** The command `version`. */
export function versionCommand<Flags>(version: () => string): CommandSpec<Flags> {
  return {
    name: "version",
    summary: "Print the version.",
    options: { json: { type: "boolean", description: "Print JSON." } },
    load: () =>
      Promise.resolve(({ options }) => {
        const found = version();
        printText(`${flagOf(options, "json") ? JSON.stringify({ version: found }) : found}\n`);
        return Promise.resolve(0);
      }),
  };
}

/**
 * The commands of one module: `repo list` runs what the module exports as `list`.
 *
 * @param common options of all these commands
 */
export function commandGroup<Flags, Name extends string>(
  group: string,
  load: () => Promise<Readonly<Record<Name, RunCommand<Flags>>>>,
  commands: Readonly<Record<Name, Omit<CommandEntry, "name">>>,
  common: OptionSpecs = {},
): CommandSpec<Flags>[] {
  return (Object.keys(commands) as Name[]).map((name) => ({
    ...commands[name],
    name: `${group} ${name}`,
    options: { ...commands[name].options, ...common },
    load: async () => (await load())[name],
  }));
}
