/** Style of a scalar. */
export type ScalarStyle = "plain" | "single" | "double" | "literal" | "folded";

/** A printed value: text for the line of its key or dash, and the lines after it, without line endings. */
export interface Printed {
  readonly head: string;
  readonly body: readonly string[];
}

// Plain text that a parser of YAML 1.2 (core schema) or of 1.1 (the types of yaml.org/type) reads as another type
// than a string. The patterns match more than necessary, because an extra quote does no harm.
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
 * Plain text in a flow collection, for every parser. YAML 1.1, YAML 1.2 and their parsers differ in `:` and `?`, so text
 * with other characters is quoted.
 */
export const FLOW_PLAIN = /[A-Za-z0-9_./~$][A-Za-z0-9_./~$@+=-]*(?: [A-Za-z0-9_./~$@+=-]+)*/;
const ALL_FLOW_PLAIN = new RegExp(`^(?:${FLOW_PLAIN.source})$`);

/** True if every parser reads the text unchanged without quotes. It is intentionally narrower than the grammar. */
export function isPlain(text: string, inFlow: boolean): boolean {
  if (inFlow && !ALL_FLOW_PLAIN.test(text)) return false;
  if (!/^[^\s\-?:,[\]{}#&*!|>'"%@`]|^[-?:][^\s,[\]{}]/.test(text) || /\s$/.test(text)) return false;
  if (/[\n\t]|: |:$| #/.test(text) || UNPRINTABLE.test(text)) return false;
  if (/^(?:---|\.\.\.)/.test(text)) return false;
  return !OTHER_TYPES.some((type) => type.test(text));
}

/** Prints in double quotes, which can represent every string. */
export function doubleQuoted(text: string): string {
  return JSON.stringify(text).replace(
    /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Place of a string. */
export interface ScalarPlace {
  readonly inFlow: boolean;
  /** Column of the lines of a block scalar. */
  readonly indent: number;
  /** Present style in the document. */
  readonly present?: ScalarStyle | undefined;
}

/** Prints a string in the present style if that can represent it, else plain, literal or in double quotes. */
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

/** True if a literal block can represent the text: printable, no space at the start, no more than one final line break. */
function isLiteral(text: string): boolean {
  return /^[^\s]/.test(text) && !/\n[ \t]*\n?$/.test(text.replace(/\n$/, "")) && !UNPRINTABLE.test(text);
}

/** True if a folded block can represent it. No line may begin with a space, because such lines are not folded. */
function isFoldable(text: string): boolean {
  return isLiteral(text) && !/\n[\s]/.test(text.slice(0, -1));
}

function blockScalar(text: string, folded: boolean, indent: number): Printed {
  const ends = text.endsWith("\n");
  const lines = (ends ? text.slice(0, -1) : text).split("\n");
  const pad = " ".repeat(indent);
  const body = lines.flatMap((line, index) => {
    const written = line === "" ? "" : pad + line;
    // In a folded block, a line break is a space. An empty line is a line break of the text.
    return folded && index > 0 ? ["", written] : [written];
  });
  return { head: (folded ? ">" : "|") + (ends ? "" : "-"), body };
}
