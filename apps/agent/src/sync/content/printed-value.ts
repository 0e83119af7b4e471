import type { DocumentFormat } from "@devplat/document-edit";
import type { Interpolation } from "./rule-template.ts";

/** One value that a template printed. */
export interface Printed extends Interpolation {
  readonly text: string;
}

/** A printed value that has to be read back from its place in the document. */
export interface PlacedValue {
  readonly printed: Printed;
  /** The text that a reader must find. */
  readonly value: string;
  /** `quote` printed it: it is in double quotes where the format has them. */
  readonly isQuoted: boolean;
  /** Blanks that `indent` put in front of each line. */
  readonly indent: number;
  /** A function of the template may have escaped the value for its place. */
  readonly isEscaped: boolean;
}

/** Formats whose content is a tree with types; the others are lines of text. */
export const STRUCTURED_FORMATS: ReadonlySet<string> = new Set(["yaml", "json", "toml"]);
const ESCAPING_FUNCTIONS: ReadonlySet<string> = new Set(["replace", "js", "toYAML"]);
const NUMBER_OR_BOOLEAN = /^(?:[-+0-9.eE]+|true|false)$/;

/** The value that must be found at the place of a printed text; undefined for texts that are part of the template. */
export function placedValue(printed: Printed, format: DocumentFormat): PlacedValue | undefined {
  const { text, call, isText, functions, sources } = printed;
  const hasDefault = functions.includes("default") && text !== "";
  const isConstant = sources.length === 0 || (hasDefault && sources.every((source) => source === ""));
  if (isConstant || call?.name === "raw") return undefined;
  if (!isText && NUMBER_OR_BOOLEAN.test(text)) return undefined;
  const isStructured = STRUCTURED_FORMATS.has(format.name);
  const input = call?.input ?? null;
  const place: PlacedValue = { printed, value: text, isQuoted: false, indent: 0, isEscaped: false };
  if (call?.name === "quote") return { ...place, value: textOf(input), isQuoted: true };
  const printsLiteral =
    (call?.name === "toJSON" && format.values.quotes) || (call?.name === "toYAML" && format.name === "yaml");
  if (printsLiteral && typeof input === "string") return { ...place, value: input, isQuoted: true };
  if (call?.name === "toJSON" && isStructured) return undefined;
  if (call?.name === "indent") {
    const [first = ""] = text.split("\n", 1);
    const [inner = ""] = textOf(input).split("\n", 1);
    return { ...place, indent: first.length - inner.length, isEscaped: functions.includes("toYAML") };
  }
  const isLiteralOfPrintf = functions.includes("printf") && /^["'`]/.test(text);
  return {
    ...place,
    isEscaped: isLiteralOfPrintf || functions.some((name) => ESCAPING_FUNCTIONS.has(name)),
  };
}

/** The text that a value prints as, for those that `quote` takes. */
function textOf(value: unknown): string {
  if (typeof value === "object" && value !== null && "number" in value) return String(value.number);
  return String(value);
}
