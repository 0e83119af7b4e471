import type { FieldValue, Fields } from "../contract.ts";
import { SecretStoreError } from "../errors.ts";
import { isList, isMap, isNumber } from "../json.ts";

/**
 * Refuses numbers that the server would change. Vault's key-value engine stores a document's text but reads it with
 * 64-bit floats and prints those again: 9223372036854775808 comes back as 9223372036854776000, 1e-400 as 0, and 1e400
 * is not taken at all. Another form of the same number (1.10 as 1.1) is not refused.
 *
 * @throws SecretStoreError `unsupported_number`, naming the field
 */
export function checkNumbers(path: string, fields: Fields): void {
  for (const [name, value] of fields) {
    if (survives(value)) continue;
    throw new SecretStoreError(
      "unsupported_number",
      `cannot write "${path}": the field ${JSON.stringify(name)} holds a number that the store would change`,
      { hint: "Vault keeps numbers as 64-bit floats. Store it as a string." },
    );
  }
}

function survives(value: FieldValue): boolean {
  if (isNumber(value)) {
    const kept = Number(value.number);
    return Number.isFinite(kept) && decimal(String(kept)) === decimal(value.number);
  }
  if (isList(value)) return value.every(survives);
  return isMap(value) ? [...value.values()].every(survives) : true;
}

/** A JSON number's value in one form: its digits without outer zeros, and the power of ten; any zero is "0". */
function decimal(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:e(.+))?$/i.exec(text);
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = match ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
