import { printText } from "@devplat/base/terminal";
import { UsageError, type CommandSpec, type CommandTable } from "./command.ts";
import { flagOf } from "./options.ts";

/** The command `completion`. It prints a script that completes the program's commands in a shell. */
export function completionCommand<Flags>(table: () => CommandTable): CommandSpec<Flags> {
  return {
    name: "completion",
    usage: "bash|zsh|fish",
    summary: "Print a script that completes commands in a shell.",
    arguments: { min: 1, max: 1 },
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

/** The command `version`. @param name text before the version. Default none */
export function versionCommand<Flags>(version: () => string, name?: string): CommandSpec<Flags> {
  return {
    name: "version",
    summary: "Print the version.",
    options: { json: { type: "boolean", description: "Print JSON." } },
    load: () =>
      Promise.resolve(({ options }) => {
        const found = version();
        const line = name === undefined ? found : `${name} ${found}`;
        printText(`${flagOf(options, "json") ? JSON.stringify({ version: found }) : line}\n`);
        return Promise.resolve(0);
      }),
  };
}
