import { isNumber, printJson, type FieldValue } from "@devplat/secret-store";

/** A field's value as text, as a program takes it: texts and numbers as they are stored, anything else as JSON. */
export function valueText(value: FieldValue): string {
  if (typeof value === "string") return value;
  if (isNumber(value)) return value.number;
  return printJson(value);
}
