import type { Options, OptionSpec, OptionSpecs } from "./command.ts";

/** An option without a value. */
export function flagOption(description: string): OptionSpec {
  return { type: "boolean", description };
}

/** An option with a text. @param value placeholder in the help: `<path>` */
export function textOption(value: string, description: string): OptionSpec {
  return { type: "string", value, description };
}

/** An option with a whole number. @param value placeholder in the help: `<seconds>` */
export function countOption(value: string, description: string): OptionSpec {
  return { type: "count", value, description };
}

/** The help option, which every command takes. */
export const HELP_OPTION: OptionSpecs = {
  help: { ...flagOption("Show help."), short: "h" },
};

/** Whether an option of type `boolean` was given. */
export function flagOf(options: Options, name: string): boolean {
  return options[name] === true;
}

/** The value of an option of type `string`. */
export function textOf(options: Options, name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}

/** The values of a repeatable option. */
export function textsOf(options: Options, name: string): readonly string[] {
  const value = options[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

/** The value of an option of type `count`, or the word that it takes instead of a number. */
export function countOf(options: Options, name: string): number | string | undefined {
  const value = options[name];
  return typeof value === "number" || typeof value === "string" ? value : undefined;
}
