/** Maximum size of a form, in bytes: the longest clipboard text with every byte percent-encoded, and its name. */
export const MAX_FORM_BYTES = 256 * 1024;

/** Whether a `Content-Type` names the encoding of the forms here. */
export function isForm(contentType: string | undefined): boolean {
  return /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(contentType ?? "");
}

/** Fields of a form by name. A field that is not UTF-8 is undefined. */
export type FormFields = ReadonlyMap<string, string | undefined>;

/**
 * Reads a form as bytes (WHATWG URL standard, section 5.1). `URLSearchParams` would replace what is not UTF-8, and a
 * text that is to arrive byte for byte would arrive as another one.
 *
 * @returns undefined for a name that is there twice, text that is not UTF-8, or a single percent sign
 */
export function parseForm(body: Uint8Array): FormFields | undefined {
  const fields = new Map<string, string | undefined>();
  const encoded = Buffer.from(body).toString("latin1");
  for (const part of encoded.split("&")) {
    if (part === "") continue;
    const equals = part.includes("=") ? part.indexOf("=") : part.length;
    const name = decoded(part.slice(0, equals));
    const value = part.slice(equals + 1);
    if (name === undefined || fields.has(name) || hasLonePercent(value)) return undefined;
    fields.set(name, decoded(value));
  }
  return fields;
}

/** The body of a form. The texts are well-formed Unicode. */
export function printForm(fields: Readonly<Record<string, string>>): string {
  return new URLSearchParams(fields).toString();
}

function hasLonePercent(text: string): boolean {
  return /%(?![0-9a-f]{2})/i.test(text);
}

/** One byte per character in, text out; undefined if the bytes are not UTF-8. */
function decoded(latin1: string): string | undefined {
  if (hasLonePercent(latin1)) return undefined;
  const bytes = latin1
    .replaceAll("+", " ")
    .replaceAll(/%([0-9a-f]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  try {
    // A byte order mark at the beginning belongs to the text.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(bytes, "latin1"));
  } catch {
    return undefined;
  }
}
