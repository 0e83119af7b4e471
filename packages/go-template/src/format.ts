import { FunctionError } from "./errors.ts";
import { formatFloat } from "./float.ts";
import { MAX_OUTPUT, MAX_PRINTF_NUMBER } from "./limits.ts";
import { canBackquote, isPrintable, quoteGo } from "./quote.ts";
import { isList, isMap, sortedEntries, type NumberText, type Value } from "./value.ts";

/** Flags, width and precision of one verb. */
interface Spec {
  readonly sharp: boolean;
  readonly zero: boolean;
  readonly plus: boolean;
  readonly minus: boolean;
  readonly space: boolean;
  /** `%#v`: Go syntax. */
  readonly goSyntax: boolean;
  readonly width: number | undefined;
  readonly precision: number | undefined;
}

const PLAIN: Spec = {
  sharp: false,
  zero: false,
  plus: false,
  minus: false,
  space: false,
  goSyntax: false,
  width: undefined,
  precision: undefined,
};

const INTEGER_VERBS = new Set("vdboOxXcqU");
const FLOAT_VERBS = new Set("vbgGxXeEfF");
const TEXT_VERBS = new Set("vsxXq");

/** Go's fmt.Sprint: a space between two values if neither is a text. */
export function print(values: readonly Value[]): string {
  let result = "";
  let wasText = true;
  for (const [index, value] of values.entries()) {
    const isText = typeof value === "string";
    if (index > 0 && !isText && !wasText) result += " ";
    result += show(value);
    wasText = isText;
  }
  return result;
}

/** Go's fmt.Sprintln: always a space, and a line feed at the end. */
export function println(values: readonly Value[]): string {
  return `${values.map(show).join(" ")}\n`;
}

/** A value in the format `%v`. */
export function show(value: Value): string {
  return formatValue(value, "v", PLAIN);
}

/**
 * Go's fmt.Sprintf, with Go's notes in the text if format and arguments do not match (`%!d(string=x)`).
 * @throws FunctionError `limit`
 */
export function printf(format: string, values: readonly Value[]): string {
  return new Printf(format, values).run();
}

class Printf {
  readonly #format: string;
  readonly #values: readonly Value[];
  #at = 0;
  #argument = 0;
  #reordered = false;
  #goodIndex = true;
  #output = "";

  constructor(format: string, values: readonly Value[]) {
    this.#format = format;
    this.#values = values;
  }

  run(): string {
    while (this.#at < this.#format.length) {
      const percent = this.#format.indexOf("%", this.#at);
      if (percent === -1) {
        this.#output += this.#format.slice(this.#at);
        break;
      }
      this.#output += this.#format.slice(this.#at, percent);
      this.#at = percent + 1;
      if (!this.#verb()) break;
      if (this.#output.length > MAX_OUTPUT) throw new FunctionError("the text is too long", "limit");
    }
    if (!this.#reordered && this.#argument < this.#values.length) {
      const extra = this.#values.slice(this.#argument).map((value) => withType(value, PLAIN));
      this.#output += `%!(EXTRA ${extra.join(", ")})`;
    }
    return this.#output;
  }

  /** Formats one verb after its `%`. Returns false if the format ended. */
  #verb(): boolean {
    this.#goodIndex = true;
    const flags = /[#0+\- ]*/y;
    flags.lastIndex = this.#at;
    const found = flags.exec(this.#format)?.[0] ?? "";
    this.#at += found.length;
    let minus = found.includes("-");
    let zero = found.includes("0");

    let afterIndex = this.#index();
    let width: number | undefined;
    if (this.#take("*")) {
      width = this.#number("%!(BADWIDTH)");
      if (width !== undefined && width < 0) {
        width = -width;
        minus = true;
        zero = false;
      }
      afterIndex = false;
    } else {
      width = this.#digits();
      if (afterIndex && width !== undefined) this.#goodIndex = false;
    }

    let precision: number | undefined;
    if (this.#at + 1 < this.#format.length && this.#take(".")) {
      if (afterIndex) this.#goodIndex = false;
      afterIndex = this.#index();
      if (this.#take("*")) {
        precision = this.#number("");
        if (precision === undefined || precision < 0) {
          precision = undefined;
          this.#output += "%!(BADPREC)";
        }
        afterIndex = false;
      } else precision = this.#digits() ?? 0;
    }
    if (!afterIndex) this.#index();

    const verb = String.fromCodePoint(this.#format.codePointAt(this.#at) ?? 0);
    if (this.#at >= this.#format.length) {
      this.#output += "%!(NOVERB)";
      return false;
    }
    this.#at += verb.length;
    const [sharp, plus] = [found.includes("#"), found.includes("+")];
    const isV = verb === "v";
    const spec: Spec = {
      sharp: sharp && !isV,
      plus: plus && !isV,
      goSyntax: sharp && isV,
      zero,
      minus,
      space: found.includes(" "),
      width,
      precision,
    };
    if (verb === "%") this.#output += "%";
    else if (!this.#goodIndex) this.#output += `%!${verb}(BADINDEX)`;
    else if (this.#argument >= this.#values.length) this.#output += `%!${verb}(MISSING)`;
    else this.#output += formatValue(this.#values[this.#argument++] ?? null, verb, spec);
    return true;
  }

  #take(character: string): boolean {
    if (this.#format[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  /** Reads a decimal number in the format. Undefined if there is none or it is too large. */
  #digits(): number | undefined {
    const digits = /[0-9]+/y;
    digits.lastIndex = this.#at;
    const found = digits.exec(this.#format)?.[0];
    if (found === undefined) return undefined;
    this.#at += found.length;
    const value = Number(found);
    if (value > MAX_PRINTF_NUMBER)
      throw new FunctionError("a width or precision of printf is too large", "limit");
    return value;
  }

  /** Reads `[3]`, the next argument to use. */
  #index(): boolean {
    if (this.#format[this.#at] !== "[") return false;
    this.#reordered = true;
    const end = this.#format.indexOf("]", this.#at);
    if (end === -1) {
      this.#goodIndex = false;
      this.#at++;
      return false;
    }
    const text = this.#format.slice(this.#at + 1, end);
    this.#at = end + 1;
    const isNumber = /^[0-9]+$/.test(text) && Number(text) <= MAX_PRINTF_NUMBER;
    const index = Number(text) - 1;
    if (isNumber && index >= 0 && index < this.#values.length) {
      this.#argument = index;
      return true;
    }
    this.#goodIndex = false;
    return isNumber;
  }

  /** Reads `*`, a width or precision from the arguments. */
  #number(note: string): number | undefined {
    const value = this.#values[this.#argument];
    if (this.#argument < this.#values.length) this.#argument++;
    if (typeof value === "bigint" && value <= MAX_PRINTF_NUMBER && value >= -MAX_PRINTF_NUMBER)
      return Number(value);
    this.#output += note;
    return undefined;
  }
}

/** @param depth more than 0 inside a list or map */
function formatValue(value: Value, verb: string, spec: Spec, depth = 0): string {
  if (value === null) {
    if (depth > 0) return spec.goSyntax ? "interface {}(nil)" : "<nil>";
    return verb === "v" || verb === "T" ? pad("<nil>", spec) : `%!${verb}(<nil>)`;
  }
  if (verb === "T" && depth === 0) return formatText(goType(value), "s", { ...spec, goSyntax: false });
  if (typeof value === "string")
    return TEXT_VERBS.has(verb) ? formatText(value, verb, spec) : bad(value, verb, spec);
  if (typeof value === "boolean") {
    return verb === "t" || verb === "v" ? pad(String(value), spec) : bad(value, verb, spec);
  }
  if (typeof value === "bigint") {
    return INTEGER_VERBS.has(verb) ? formatInteger(value, verb, spec) : bad(value, verb, spec);
  }
  if (typeof value === "number") {
    return FLOAT_VERBS.has(verb) ? formatFloatVerb(value, verb, spec) : bad(value, verb, spec);
  }
  if (isList(value)) {
    const items = value.map((item) => formatValue(item, verb, spec, depth + 1));
    return spec.goSyntax ? `${goType(value)}{${items.join(", ")}}` : `[${items.join(" ")}]`;
  }
  if (isMap(value)) {
    const items = sortedEntries(value).map(
      ([key, item]) =>
        `${formatValue(key, verb, spec, depth + 1)}:${formatValue(item, verb, spec, depth + 1)}`,
    );
    return spec.goSyntax ? `${goType(value)}{${items.join(", ")}}` : `map[${items.join(" ")}]`;
  }
  return formatNumberText(value, verb, spec);
}

/** Formats a stored number: as text with %v, %s and %q, as a number with verbs for numbers. */
function formatNumberText(value: NumberText, verb: string, spec: Spec): string {
  if (verb === "v" || verb === "s") return pad(value.number, spec);
  if (verb === "q") return pad(quoteGo(value.number), spec);
  if (/^-?\d+$/.test(value.number) && INTEGER_VERBS.has(verb))
    return formatInteger(BigInt(value.number), verb, spec);
  return FLOAT_VERBS.has(verb) ? formatFloatVerb(Number(value.number), verb, spec) : bad(value, verb, spec);
}

function formatText(value: string, verb: string, spec: Spec): string {
  if (verb === "x" || verb === "X") return formatHex(value, verb, spec);
  const text = spec.precision === undefined ? value : Array.from(value).slice(0, spec.precision).join("");
  if (verb === "q" || spec.goSyntax) {
    return pad(spec.sharp && canBackquote(text) ? `\`${text}\`` : quoteGo(text, '"', spec.plus), spec);
  }
  return pad(text, spec);
}

function formatHex(value: string, verb: string, spec: Spec): string {
  const bytes = Buffer.from(value).subarray(0, spec.precision);
  if (bytes.length === 0) return pad("", { ...spec, zero: spec.zero });
  const prefix = spec.sharp ? "0x" : "";
  const pieces = spec.space
    ? [...bytes].map((byte) => byte.toString(16).padStart(2, "0"))
    : [bytes.toString("hex")];
  const text = pieces.map((piece) => prefix + piece).join(" ");
  return pad(verb === "X" ? text.toUpperCase() : text, spec);
}

function formatInteger(value: bigint, verb: string, spec: Spec): string {
  switch (verb) {
    case "c":
      return pad(characterOf(value), spec);
    case "q":
      return pad(quoteGo(characterOf(value), "'", spec.plus), spec);
    case "U":
      return formatUnicode(value, spec);
    default:
  }
  const base = { b: 2, o: 8, O: 8, x: 16, X: 16 }[verb] ?? 10;
  const negative = value < 0n;
  let digits = (negative ? -value : value).toString(base);
  const withoutZero = { ...spec, zero: false };
  if (spec.precision === 0 && value === 0n) return pad("", withoutZero);
  const sign = negative ? "-" : spec.plus ? "+" : spec.space ? " " : "";
  const filled = spec.zero && !spec.minus && spec.width !== undefined ? spec.width - sign.length : 0;
  digits = digits.padStart(spec.precision ?? filled, "0");
  if (spec.sharp && base === 2) digits = `0b${digits}`;
  if (spec.sharp && base === 8 && !digits.startsWith("0")) digits = `0${digits}`;
  if (spec.sharp && base === 16) digits = `0x${digits}`;
  if (verb === "X") digits = digits.toUpperCase();
  if (verb === "O") digits = `0o${digits}`;
  return pad(sign + digits, withoutZero);
}

function formatUnicode(value: bigint, spec: Spec): string {
  const unsigned = BigInt.asUintN(64, value);
  const digits = unsigned
    .toString(16)
    .toUpperCase()
    .padStart(Math.max(4, spec.precision ?? 0), "0");
  const character = unsigned <= 0x10ffffn ? characterOf(unsigned) : "";
  const shown = spec.sharp && character !== "" && isPrintable(character) ? ` '${character}'` : "";
  return pad(`U+${digits}${shown}`, { ...spec, zero: false });
}

/** Character of a code point, or U+FFFD if there is none. */
function characterOf(value: bigint): string {
  const valid = value >= 0n && value <= 0x10ffffn && !(value >= 0xd800n && value < 0xe000n);
  return valid ? String.fromCodePoint(Number(value)) : "\ufffd";
}

function formatFloatVerb(value: number, verb: string, spec: Spec): string {
  const format = verb === "v" ? "g" : verb;
  const precision = spec.precision ?? ("eEfF".includes(verb) ? 6 : -1);
  const formatted = formatFloat(value, format, precision);
  const sign = /^[-+]/.test(formatted) ? formatted.charAt(0) : "+";
  let body = formatted.replace(/^[-+]/, "");
  if (!Number.isFinite(value)) {
    const shown = Number.isNaN(value) && !spec.plus && !spec.space ? "" : shownSign(sign, spec);
    return pad(shown + body, { ...spec, zero: false });
  }
  if ((spec.sharp || spec.goSyntax) && verb !== "b" && !spec.goSyntax)
    body = withPoint(body, format, precision);
  const shown = shownSign(sign, spec);
  if (shown !== "" && spec.zero && !spec.minus && spec.width !== undefined) {
    return shown + body.padStart(spec.width - 1, "0");
  }
  return pad(shown + body, spec);
}

function shownSign(sign: string, spec: Spec): string {
  if (sign === "-" || spec.plus) return sign;
  return spec.space ? " " : "";
}

/** The flag `#`: always a decimal point, and the zeros that %g drops. */
function withPoint(body: string, format: string, precision: number): string {
  const isHex = format === "x" || format === "X";
  const exponent = body.search(isHex ? /[pP]/ : /[eE]/);
  const number = exponent === -1 ? body : body.slice(0, exponent);
  const tail = exponent === -1 ? "" : body.slice(exponent);
  let missing = "vgGx".includes(format) ? (precision === -1 ? 6 : precision) : 0;
  let significant = false;
  for (const digit of number) {
    if (digit === ".") continue;
    if (digit !== "0") significant = true;
    if (significant) missing--;
  }
  if (!number.includes(".") && number === "0") missing--;
  return `${number}${number.includes(".") ? "" : "."}${"0".repeat(Math.max(0, missing))}${tail}`;
}

function pad(text: string, spec: Spec): string {
  if (spec.width === undefined) return text;
  const missing = spec.width - Array.from(text).length;
  if (missing <= 0) return text;
  if (spec.minus) return text + " ".repeat(missing);
  return (spec.zero ? "0" : " ").repeat(missing) + text;
}

/** Go's note for a verb that does not match the value: `%!d(string=x)`. */
function bad(value: Value, verb: string, spec: Spec): string {
  return `%!${verb}(${withType(value, spec)})`;
}

function withType(value: Value, spec: Spec): string {
  return value === null ? "<nil>" : `${goType(value)}=${formatValue(value, "v", spec)}`;
}

function goType(value: Exclude<Value, null>): string {
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return "int";
  if (typeof value === "number") return "float64";
  if (isMap(value)) return "map[string]interface {}";
  return isList(value) ? "[]interface {}" : "json.Number";
}
