import type { FieldValue, Fields } from "../contract.ts";
import { SecretStoreError } from "../errors.ts";
import { isList, isMap, isNumber } from "../json.ts";

/**
 * Refuses values that the server would change. Vault's key-value engine stores a document's text but reads it with Go's JSON
 * and prints that again, with two losses:
 * - Numbers become 64-bit floats: 9223372036854775808 becomes 9223372036854776000, 1e-400 becomes 0, and 1e400 is
 *   refused by Vault. A change of form (1.10 as 1.1) is allowed.
 * - Half of a surrogate pair, in a text or a key, becomes U+FFFD.
 *
 * @throws SecretStoreError `unsupported_number` or `unsupported_text`. The hint names the field, the message does not
 */
export function checkKept(path: string, fields: Fields): void {
  for (const [name, value] of fields) {
    const field = `The field ${JSON.stringify(name)}`;
    if (!everyLeaf(value, isNumberKept)) {
      throw new SecretStoreError(
        "unsupported_number",
        `cannot write "${path}": it holds a number that the store would change`,
        { hint: `${field} has it, and Vault keeps numbers as 64-bit floats. Write the number as a string.` },
      );
    }
    if (!name.isWellFormed() || !everyLeaf(value, isTextKept)) {
      throw new SecretStoreError(
        "unsupported_text",
        `cannot write "${path}": it holds half of a character (a lone surrogate), which the store would change`,
        { hint: `${field} has it, in a text or a name. Write the whole character, or encode the value.` },
      );
    }
  }
}

/** Whether a condition holds for all texts, keys and numbers inside a value. */
function everyLeaf(value: FieldValue, holds: (leaf: FieldValue) => boolean): boolean {
  if (isList(value)) return value.every((item) => everyLeaf(item, holds));
  if (isMap(value)) return [...value].every(([key, item]) => holds(key) && everyLeaf(item, holds));
  return holds(value);
}

function isTextKept(leaf: FieldValue): boolean {
  return typeof leaf !== "string" || leaf.isWellFormed();
}

function isNumberKept(leaf: FieldValue): boolean {
  if (!isNumber(leaf)) return true;
  const kept = Number(leaf.number);
  return Number.isFinite(kept) && decimal(String(kept)) === decimal(leaf.number);
}

/** Value of a JSON number in a canonical form: digits without outer zeros, and the power of ten. Zero is "0". */
function decimal(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:e(.+))?$/i.exec(text);
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = match ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
