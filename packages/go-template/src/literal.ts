/** The largest Go `int`. */
const MAX_INT = 2n ** 63n - 1n;

/** `1_000` and `0x_ff`: an underscore between digits or after the prefix (Go specification, "Integer literals"). */
const UNDERSCORES = /^[+-]?(?:0[xXoObB]_?)?[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*$/;

/**
 * Reads a Go number literal: an integer (decimal, `0x`, `0o`, `0b`, leading 0 for octal) as bigint, anything with a
 * point or exponent as number.
 * @returns undefined if the text is not a number, or an integer beyond 64 bits. Complex numbers are not supported
 */
export function readNumber(text: string): bigint | number | undefined {
  const sign = text.startsWith("-") ? -1 : 1;
  const body = text.replace(/^[+-]/, "");
  const isHex = /^0[xX]/.test(body);
  if (isHex ? /[.pP]/.test(body) : /[.eE]/.test(body))
    return isHex ? hexFloat(body, sign) : decimalFloat(body, sign);
  if (!UNDERSCORES.test(body)) return undefined;
  const digits = body.replaceAll("_", "");
  const octal = /^0[0-9]/.test(digits) ? `0o${digits.slice(1)}` : digits;
  if (!/^(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[0-9]+)$/.test(octal)) return undefined;
  const value = BigInt(sign) * BigInt(octal);
  return value > MAX_INT || value < -MAX_INT - 1n ? undefined : value;
}

function decimalFloat(body: string, sign: number): number | undefined {
  if (!/^(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/.test(body)) return undefined;
  const value = Number(body);
  return Number.isFinite(value) ? sign * value : undefined;
}

/** Reads `0x1.8p3`. The exponent, a power of two, is required. */
function hexFloat(body: string, sign: number): number | undefined {
  const match = /^0[xX]_?([0-9a-fA-F_]*)(?:\.([0-9a-fA-F_]*))?[pP]([+-]?[0-9]+)$/.exec(body);
  if (match === null) return undefined;
  const whole = (match[1] ?? "").replaceAll("_", "");
  const fraction = (match[2] ?? "").replaceAll("_", "");
  if (whole + fraction === "") return undefined;
  const value = Number(BigInt(`0x${whole}${fraction}`)) * 2 ** (Number(match[3]) - 4 * fraction.length);
  return Number.isFinite(value) ? sign * value : undefined;
}

const SIMPLE_ESCAPES: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
  "\\": 92,
};

/** Reads a Go string literal, in double quotes or backquotes. @returns undefined if it is not one */
export function readString(literal: string): string | undefined {
  // In a raw string Go drops carriage returns.
  if (literal.startsWith("`")) return literal.slice(1, -1).replaceAll("\r", "");
  return unescape(literal.slice(1, -1), '"');
}

/** Reads a Go rune literal as its code point. @returns undefined if it is not one */
export function readChar(literal: string): bigint | undefined {
  const inner = literal.slice(1, -1);
  const byte = /^\\(?:x([0-9a-fA-F]{2})|([0-3][0-7]{2}))$/.exec(inner);
  if (byte !== null) return BigInt(byte[1] === undefined ? `0o${byte[2] ?? ""}` : `0x${byte[1]}`);
  const text = unescape(inner, "'");
  if (text === undefined || Array.from(text).length !== 1) return undefined;
  return BigInt(text.codePointAt(0) ?? 0);
}

function unescape(inner: string, quote: string): string | undefined {
  if (!inner.includes("\\")) return inner;
  const pattern =
    /\\(?:([abfnrtv\\"'])|x([0-9a-fA-F]{2})|([0-3][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))|[^\\]+/y;
  const parts: Buffer[] = [];
  while (pattern.lastIndex < inner.length) {
    const match = pattern.exec(inner);
    if (match === null) return undefined;
    const [whole, simple, hex, octal, short, long] = match;
    if (simple !== undefined) {
      if ((simple === '"' || simple === "'") && simple !== quote) return undefined;
      parts.push(Buffer.of(SIMPLE_ESCAPES[simple] ?? simple.charCodeAt(0)));
    } else if (hex !== undefined) parts.push(Buffer.of(Number.parseInt(hex, 16)));
    else if (octal !== undefined) parts.push(Buffer.of(Number.parseInt(octal, 8)));
    else if (short !== undefined || long !== undefined) {
      const point = Number.parseInt(short ?? long ?? "", 16);
      if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return undefined;
      parts.push(Buffer.from(String.fromCodePoint(point)));
    } else parts.push(Buffer.from(whole));
  }
  // \x and octal escapes are bytes: several may make one character.
  return Buffer.concat(parts).toString("utf8");
}
