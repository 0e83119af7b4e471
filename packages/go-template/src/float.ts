/** Digits of a float64 and the position of the decimal point: 0.`digits` × 10^`point`. */
interface Decimal {
  readonly digits: string;
  readonly point: number;
}

/**
 * Go's strconv.FormatFloat for the formats e, E, f, F, g and G (and x, X, b), with sign only if negative.
 * @param precision number of digits, or -1 for the shortest text that identifies the value
 */
export function formatFloat(value: number, verb: string, precision: number): string {
  if (Number.isNaN(value)) return "NaN";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  if (!Number.isFinite(value)) return `${sign === "" ? "+" : "-"}Inf`;
  const magnitude = Math.abs(value);
  switch (verb) {
    case "e":
    case "E":
      return sign + exponential(round(magnitude, precision === -1 ? -1 : precision + 1), precision, verb);
    case "f":
    case "F":
      return sign + fixed(magnitude, precision);
    case "x":
    case "X":
      return sign + hexadecimal(magnitude, precision, verb);
    case "b":
      return sign + binary(magnitude);
    default:
      return sign + general(magnitude, precision, verb);
  }
}

/** The value rounded to `count` significant digits, or with -1 to the shortest unambiguous ones. */
function round(magnitude: number, count: number): Decimal {
  if (magnitude === 0) return { digits: "0", point: 1 };
  if (count === -1) {
    const [mantissa = "", exponent = "0"] = magnitude.toExponential().split("e");
    return { digits: mantissa.replace(".", ""), point: Number(exponent) + 1 };
  }
  return roundDecimal(exact(magnitude), count);
}

/** All digits of a value, up to about 770. JavaScript's toFixed and toExponential round a tie up, Go rounds it to even. */
function exact(magnitude: number): Decimal {
  const { mantissa, exponent } = parts(magnitude);
  // m × 2^-n is m × 5^n / 10^n.
  const whole = exponent >= 0 ? mantissa << BigInt(exponent) : mantissa * 5n ** BigInt(-exponent);
  const digits = whole.toString();
  return { digits, point: digits.length + Math.min(0, exponent) };
}

/** Rounds to `count` digits, half to even. With a count below zero, no digits stay. */
function roundDecimal({ digits, point }: Decimal, count: number): Decimal {
  if (count >= digits.length) return { digits, point };
  if (count < 0) return { digits: "0", point };
  const kept = digits.slice(0, count);
  const half = digits.charCodeAt(count) - 0x35;
  const tie = half === 0 && /^0*$/.test(digits.slice(count + 1));
  const odd = count > 0 && (digits.charCodeAt(count - 1) & 1) === 1;
  if (half < 0 || (tie && !odd)) return { digits: kept === "" ? "0" : kept, point };
  const up = (BigInt(kept === "" ? "0" : kept) + 1n).toString();
  // 9.99 becomes 10.0: one more digit before the point.
  const grown = up.length > Math.max(count, 0) ? 1 : 0;
  return { digits: grown === 1 && count > 0 ? up.slice(0, -1) : up, point: point + grown };
}

/** The value as mantissa × 2^exponent, both integers. */
function parts(magnitude: number): { mantissa: bigint; exponent: number } {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, magnitude);
  const raw = bits.getBigUint64(0);
  const biased = Number(raw >> 52n);
  const fraction = raw & ((1n << 52n) - 1n);
  if (biased === 0) return { mantissa: fraction, exponent: -1074 };
  return { mantissa: fraction | (1n << 52n), exponent: biased - 1075 };
}

function exponential({ digits, point }: Decimal, precision: number, verb: string): string {
  const fraction = precision === -1 ? digits.slice(1) : digits.slice(1).padEnd(precision, "0");
  const exponent = point - 1;
  const text = String(Math.abs(exponent)).padStart(2, "0");
  return `${digits[0] ?? "0"}${fraction === "" ? "" : `.${fraction}`}${verb}${exponent < 0 ? "-" : "+"}${text}`;
}

function fixed(magnitude: number, precision: number): string {
  if (precision === -1) return plain(round(magnitude, -1));
  const value = exact(magnitude);
  const { digits, point } = roundDecimal(value, value.point + precision);
  const [whole = "", fraction = ""] = plain(digits === "0" ? { digits, point: 1 } : { digits, point }).split(
    ".",
  );
  return precision === 0 ? whole : `${whole}.${fraction.padEnd(precision, "0")}`;
}

function plain({ digits, point }: Decimal): string {
  if (point <= 0) return `0.${"0".repeat(-point)}${digits}`;
  if (digits.length <= point) return digits.padEnd(point, "0");
  return `${digits.slice(0, point)}.${digits.slice(point)}`;
}

function general(magnitude: number, precision: number, verb: string): string {
  const count = precision === 0 ? 1 : precision;
  const rounded = round(magnitude, count);
  const digits = rounded.digits.replace(/0+$/, "") || "0";
  const decimal = { digits, point: rounded.point };
  let limit = count;
  if (limit > digits.length && digits.length >= decimal.point) limit = digits.length;
  // %e for small and large exponents. The shortest form uses the limit for precision 6 (ftoa.go).
  if (precision === -1) limit = 6;
  const exponent = decimal.point - 1;
  if (exponent < -4 || exponent >= limit) {
    return exponential(decimal, digits.length - 1, verb === "G" ? "E" : "e");
  }
  return plain(decimal);
}

function hexadecimal(magnitude: number, precision: number, verb: string): string {
  let { mantissa, exponent } = parts(magnitude);
  // One bit before the point, 52 after. A subnormal number is shifted to that form.
  if (mantissa !== 0n) {
    const shift = 53 - mantissa.toString(2).length;
    mantissa <<= BigInt(shift);
    exponent += 52 - shift;
  } else exponent = 0;
  if (precision >= 0 && precision < 13) {
    const shift = BigInt(4 * (13 - precision));
    const half = 1n << (shift - 1n);
    const rest = mantissa & ((1n << shift) - 1n);
    mantissa >>= shift;
    if (rest > half || (rest === half && (mantissa & 1n) === 1n)) mantissa += 1n;
    mantissa <<= shift;
    if (mantissa >> 53n !== 0n) {
      mantissa >>= 1n;
      exponent++;
    }
  }
  const digits = mantissa.toString(16).padStart(14, "0");
  const all = digits.slice(1);
  const fraction = precision === -1 ? all.replace(/0+$/, "") : all.padEnd(precision, "0").slice(0, precision);
  const power = `${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  const text = `0x${digits[0] ?? "0"}${fraction === "" ? "" : `.${fraction}`}p${power}`;
  return verb === "X" ? text.toUpperCase() : text;
}

function binary(magnitude: number): string {
  const { mantissa, exponent } = parts(magnitude);
  return `${mantissa}p${exponent < 0 ? "" : "+"}${exponent}`;
}
