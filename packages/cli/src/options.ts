import type { Options, OptionSpecs } from "./command.ts";

/** The help option, which every command takes. */
export const HELP_OPTION: OptionSpecs = {
  help: { type: "boolean", short: "h", description: "Show help." },
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
