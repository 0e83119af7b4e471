/** How a scalar is written. */
export type ScalarStyle = "plain" | "single" | "double" | "literal" | "folded";

/** A printed value: what stands on the line of its key or dash, and the lines that follow, without line endings. */
export interface Printed {
  readonly head: string;
  readonly body: readonly string[];
}

// Plain text that a reader of YAML 1.2 (core schema) or of 1.1 (the types of yaml.org/type) takes for something else
// than a string. Wider than the rules in corners: a quote too many does no harm.
const OTHER_TYPES = [
  /^(?:~|null|Null|NULL|<<|=)$/,
  /^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/,
  /^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(?::[0-9]+)*)$/,
  /^[-+]?(?:[0-9][0-9_]*)?(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?$/,
  /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*$/,
  /^[-+]?\.(?:inf|Inf|INF|nan|NaN|NAN)$/,
  /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?$/,
];

// YAML 1.2.2, production 1 (c-printable), without the line breaks of 1.1 (NEL, LS, PS) and the BOM.
const UNPRINTABLE = /[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]/u;

/**
 * Plain text in brackets, for every reader. YAML 1.1, YAML 1.2 and their readers differ there in `:` and `?`, so text
 * with other characters is quoted.
 */
export const FLOW_PLAIN = /[A-Za-z0-9_./~$][A-Za-z0-9_./~$@+=-]*(?: [A-Za-z0-9_./~$@+=-]+)*/;
const ALL_FLOW_PLAIN = new RegExp(`^(?:${FLOW_PLAIN.source})$`);

/** True if the text stands for itself without quotes, for every reader. Narrower than the grammar on purpose. */
export function isPlain(text: string, inFlow: boolean): boolean {
  if (inFlow && !ALL_FLOW_PLAIN.test(text)) return false;
  if (!/^[^\s\-?:,[\]{}#&*!|>'"%@`]|^[-?:][^\s,[\]{}]/.test(text) || /\s$/.test(text)) return false;
  if (/[\n\t]|: |:$| #/.test(text) || UNPRINTABLE.test(text)) return false;
  if (/^(?:---|\.\.\.)/.test(text)) return false;
  return !OTHER_TYPES.some((type) => type.test(text));
}

/** Prints in double quotes, which carry every string. */
export function doubleQuoted(text: string): string {
  return JSON.stringify(text).replace(
    /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** What is known of the place of a string. */
export interface ScalarPlace {
  readonly inFlow: boolean;
  /** The column of the lines of a block scalar. */
  readonly indent: number;
  /** The style that the document has there now. */
  readonly present?: ScalarStyle | undefined;
}

/** Prints a string in the style that is there if that can carry it, else plain, literal or in double quotes. */
export function printString(text: string, { inFlow, indent, present }: ScalarPlace): Printed {
  const inline = (head: string): Printed => ({ head, body: [] });
  if (present === "double") return inline(doubleQuoted(text));
  if (present === "single" && !/[\n\r]/.test(text) && !UNPRINTABLE.test(text)) {
    return inline(`'${text.replaceAll("'", "''")}'`);
  }
  if (!inFlow && (present === "literal" || present === "folded" || text.includes("\n"))) {
    const folded = present === "folded" && isFoldable(text);
    if (folded || isLiteral(text)) return blockScalar(text, folded, indent);
  }
  return inline(isPlain(text, inFlow) ? text : doubleQuoted(text));
}

/** True if a literal block carries the text: printable, no blank at the start, at most one line break at the end. */
function isLiteral(text: string): boolean {
  return /^[^\s]/.test(text) && !/\n[ \t]*\n?$/.test(text.replace(/\n$/, "")) && !UNPRINTABLE.test(text);
}

/** True if a folded block carries it: lines that begin with a blank are not folded, so there must be none. */
function isFoldable(text: string): boolean {
  return isLiteral(text) && !/\n[\s]/.test(text.slice(0, -1));
}

function blockScalar(text: string, folded: boolean, indent: number): Printed {
  const ends = text.endsWith("\n");
  const lines = (ends ? text.slice(0, -1) : text).split("\n");
  const pad = " ".repeat(indent);
  const body = lines.flatMap((line, index) => {
    const written = line === "" ? "" : pad + line;
    // In a folded block one line break is a blank; a line break of the text takes an empty line.
    return folded && index > 0 ? ["", written] : [written];
  });
  return { head: (folded ? ">" : "|") + (ends ? "" : "-"), body };
}
