/** An option of a command line. */
export interface OptionSpec {
  /** `count` takes a whole number from 0 to 10^15 - 1. */
  readonly type: "boolean" | "string" | "count";
  /** What stands for the value in the help: `<path>`. */
  readonly value?: string;
  readonly description: string;
  /** One letter that stands for it: `c` for `-c`. */
  readonly short?: string;
  /** It may be given several times, and its values are a list. Only of type `string`. */
  readonly repeatable?: true;
  /** The command is refused without it. */
  readonly required?: true;
  /** The only values that it takes. Only of type `string`. */
  readonly choices?: readonly string[];
  /** A word that type `count` takes in the place of a number. */
  readonly word?: string;
  /** The option of the same command that it cannot be given with. */
  readonly excludes?: string;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export type OptionValue = string | boolean | number | readonly string[];
/** By name, without dashes; what was not given is not there. */
export type Options = Readonly<Record<string, OptionValue>>;

/** One call of a command. `Flags` is what the program makes of the options that every command takes. */
export interface Invocation<Flags> {
  readonly positionals: readonly string[];
  /** The command's own, and those of every command. */
  readonly options: Options;
  readonly flags: Flags;
  readonly environment: NodeJS.ProcessEnv;
}

/** Does the work. Gives the exit code; nothing is 0. */
export type RunCommand<Flags> = (invocation: Invocation<Flags>) => Promise<number | void>;

/** What help, completion and messages tell of a command. */
export interface CommandEntry {
  /** One word, or two: `secrets put`. With `migrate` and `migrate status`, the one word alone is a command, too. */
  readonly name: string;
  /** Arguments after the name, for the help. */
  readonly usage?: string;
  readonly summary: string;
  readonly options?: OptionSpecs;
  /** How many arguments it takes. Default none. */
  readonly arguments?: { readonly min: number; readonly max: number };
}

/** An entry of the table: it can be described without being loaded. */
export interface CommandSpec<Flags> extends CommandEntry {
  readonly load: () => Promise<RunCommand<Flags>>;
}

/** What help, completion and messages tell of a program. */
export interface CommandTable<Command extends CommandEntry = CommandEntry> {
  /** The word that calls it. */
  readonly name: string;
  /** One sentence: what it is for. */
  readonly description: string;
  /** In the order of the help. */
  readonly commands: readonly Command[];
  /** Options that every command takes, `--help` apart. */
  readonly globalOptions: OptionSpecs;
  /** What stands below the list of commands: examples, exit codes. Default nothing. */
  readonly notes?: string;
  /** Words that will be commands in a later version, and what they are for. */
  readonly notBuilt?: Readonly<Record<string, string>>;
}

/** A program that can be run. */
export interface Program<Flags> extends CommandTable<CommandSpec<Flags>> {
  /** Reads the options of every command. */
  readonly flags: (options: Options) => Flags;
  /** Exit code of a command line that is wrong, and of errors with one of `usageCodes`. Default 1. */
  readonly usageExit?: number;
  readonly usageCodes?: readonly string[];
  /** Whether a fault of the program is shown with its stack, and how one asks for that. */
  readonly debug: { readonly isOn: (flags: Flags) => boolean; readonly hint: string };
}

/** The command line is wrong. The message never repeats an argument that could be a value. */
export class UsageError extends Error {
  /** The command or group whose help tells more; `""`: the list of commands. */
  readonly about: string;

  constructor(message: string, about = "") {
    super(message);
    this.about = about;
  }
}
