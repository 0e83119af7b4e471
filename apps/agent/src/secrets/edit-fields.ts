import type { Fields } from "@devplat/secret-store";
import { REPLACEMENT, carriedText, isDamagedByPage, isFormName, textOf, valueFromForm } from "./form-text.ts";

/**
 * Why an edit of one row is refused.
 * - `name_taken`: another field has the new name.
 * - `name_unusable`: a form cannot carry the name, or it is empty.
 * - `text_unusable`: a form cannot carry the value, because of a NUL character or an unpaired surrogate.
 * - `field_missing`: the field that was edited is not there.
 * - `last_field`: a secret keeps at least one field; to remove it all, delete the secret.
 */
export type EditRefusal = "name_taken" | "name_unusable" | "text_unusable" | "field_missing" | "last_field";

export type EditOutcome =
  | { readonly fields: Fields }
  | {
      readonly refusal: EditRefusal;
    };

/** Changes one row: a new value, a new name, or both. The order of the fields stays, and so does every other value. */
export function changeField(
  fields: Fields,
  row: { original: string; name: string; text: string },
): EditOutcome {
  const current = fields.get(row.original);
  if (current === undefined || !isFormName(row.original)) return { refusal: "field_missing" };
  const renamed = row.name !== row.original;
  if (renamed && !isNewName(row.name)) return { refusal: "name_unusable" };
  if (renamed && fields.has(row.name)) return { refusal: "name_taken" };
  const value = valueFromForm(current, row.text);
  if (value !== current && !isUsable(row.text, textOf(current))) return { refusal: "text_unusable" };
  const entries = [...fields].map(([name, each]) =>
    name === row.original ? ([row.name, value] as const) : ([name, each] as const),
  );
  return { fields: new Map(entries) };
}

/** Adds a field at the end; its value is a string with LF endings. */
export function addField(fields: Fields, name: string, text: string): EditOutcome {
  if (!isNewName(name)) return { refusal: "name_unusable" };
  if (fields.has(name)) return { refusal: "name_taken" };
  if (!isUsable(text)) return { refusal: "text_unusable" };
  return { fields: new Map([...fields, [name, carriedText(text)]]) };
}

export function removeField(fields: Fields, name: string): EditOutcome {
  if (!fields.has(name)) return { refusal: "field_missing" };
  if (fields.size === 1) return { refusal: "last_field" };
  return { fields: new Map([...fields].filter(([each]) => each !== name)) };
}

/**
 * Whether an edited text is what its author means: a NUL character would be stored as another one, and so would what a
 * page showed in place of a character of the stored text.
 */
function isUsable(text: string, stored = ""): boolean {
  return !text.includes("\0") && !(text.includes(REPLACEMENT) && isDamagedByPage(stored));
}

function isNewName(name: string): boolean {
  return name !== "" && isFormName(name);
}
