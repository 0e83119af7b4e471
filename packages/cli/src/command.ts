/** An option of a command line. */
export interface OptionSpec {
  /** `count` takes a whole number from 0 to 10^15 - 1. */
  readonly type: "boolean" | "string" | "count";
  /** Placeholder of the value in the help: `<path>`. */
  readonly value?: string;
  readonly description: string;
  /** Short form, one letter: `c` for `-c`. */
  readonly short?: string;
  /** The option may be given several times. Its value is a list. Only for type `string`. */
  readonly repeatable?: true;
  /** The command cannot run without this option. */
  readonly required?: true;
  /** Allowed values. Only for type `string`. */
  readonly choices?: readonly string[];
  /** A word that type `count` takes instead of a number. */
  readonly word?: string;
  /** Option of the same command that cannot be combined with this one. */
  readonly excludes?: string;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export type OptionValue = string | boolean | number | readonly string[];
/** Given options by name, without dashes. */
export type Options = Readonly<Record<string, OptionValue>>;

/** One call of a command. `Flags` is the program's own form of its global options. */
export interface Invocation<Flags> {
  readonly positionals: readonly string[];
  /** Options of the command, and global options. */
  readonly options: Options;
  readonly flags: Flags;
  readonly environment: NodeJS.ProcessEnv;
}

/** Runs the command. @returns the exit code; undefined means 0 */
export type RunCommand<Flags> = (invocation: Invocation<Flags>) => Promise<number | void>;

/** Description of a command for help, completion and messages. */
export interface CommandEntry {
  /** One or two words: `secrets put`. One word can be a command and also begin others: `migrate`, `migrate status`. */
  readonly name: string;
  /**
   * Arguments after the name, which also say how many there are: `KEY [FIELD]` one or two, `NAME…` one or more. What is
   * before ` -- ` and in parentheses is only for the help. Default none.
   */
  readonly usage?: string;
  readonly summary: string;
  readonly options?: OptionSpecs;
  /**
   * Command line of this program that prints the possible arguments for completion: one in each line, before two
   * blanks and its description.
   */
  readonly argumentsFrom?: string;
  /**
   * Whether all arguments, options too, go to the command as they are written: it gives them to another program. `options` is
   * then only for help and completion. Default false.
   */
  readonly argumentsAsGiven?: boolean;
}

/** A command that can be run. It is loaded when it is called; its description needs no loading. */
export interface CommandSpec<Flags> extends CommandEntry {
  readonly load: () => Promise<RunCommand<Flags>>;
}

/** Description of a program for help, completion and messages. */
export interface CommandTable<Command extends CommandEntry = CommandEntry> {
  /** Name of the program on the command line. */
  readonly name: string;
  /** Purpose of the program in one sentence. */
  readonly description: string;
  /** In the order of the help. */
  readonly commands: readonly Command[];
  /** Options that every command takes, except `--help`. */
  readonly globalOptions: OptionSpecs;
  /** Text below the list of commands: examples, exit codes. Default none. */
  readonly notes?: string;
  /** Commands of a later version, each with its purpose. */
  readonly notBuilt?: Readonly<Record<string, string>>;
}

/** A program that can be run. */
export interface Program<Flags> extends CommandTable<CommandSpec<Flags>> {
  /** Makes the program's own form of its global options. */
  readonly flags: (options: Options) => Flags;
  /** Exit code after a wrong command line, and after errors with one of `usageCodes`. Default 1. */
  readonly usageExit?: number;
  readonly usageCodes?: readonly string[];
  /** Whether an internal error is shown with its stack, and how the user turns that on. */
  readonly debug: { readonly isOn: (flags: Flags) => boolean; readonly hint: string };
}

/** Error for a wrong command line. The message never repeats an argument that could be a value. */
export class UsageError extends Error {
  /** Command or group whose help explains more. `""` is the list of commands. */
  readonly about: string;

  constructor(message: string, about = "") {
    super(message);
    this.about = about;
  }
}
