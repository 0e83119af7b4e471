/** An option of a command line. */
export interface OptionSpec {
  readonly type: "boolean" | "string";
  /** What stands for the value in the help: `<path>`. */
  readonly value?: string;
  readonly description: string;
  /** It may be given several times, and its values are a list. */
  readonly repeatable?: true;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** Flags that every command takes. */
export interface GlobalFlags {
  readonly config: string | undefined;
  readonly logLevel: string;
  readonly logFormat: string;
  readonly dryRun: boolean;
}

/** One call of a command. */
export interface Invocation {
  readonly positionals: readonly string[];
  /** The command's own options, without dashes. */
  readonly options: Readonly<Record<string, string | boolean | readonly string[]>>;
  readonly flags: GlobalFlags;
  readonly environment: NodeJS.ProcessEnv;
  /** The table that it was found in. */
  readonly commands: readonly CommandSpec[];
}

/** What a command's module exports. Gives the exit code: 0 or 1. */
export type RunCommand = (invocation: Invocation) => Promise<number>;

/** An entry of the table: everything that the help shows, without loading the command itself. */
export interface CommandSpec {
  /** One word, or two: `secrets put`. */
  readonly name: string;
  /** Arguments after the name, for the help. */
  readonly usage?: string;
  readonly summary: string;
  readonly options?: OptionSpecs;
  /** How many arguments it takes. Default none. */
  readonly arguments?: { readonly min: number; readonly max: number };
  readonly load: () => Promise<{ readonly run: RunCommand }>;
}
