export { commandGroup, completionCommand, versionCommand } from "./common-commands.ts";
export {
  UsageError,
  type CommandSpec,
  type CommandTable,
  type Invocation,
  type Options,
  type OptionSpec,
  type OptionSpecs,
  type Program,
  type RunCommand,
} from "./command.ts";
export { countOf, countOption, flagOf, flagOption, textOf, textOption, textsOf } from "./options.ts";
export { parseCommandLine, type Parsed } from "./parse.ts";
export { printResult, printTable } from "./print.ts";
export { runProgram } from "./run-program.ts";
