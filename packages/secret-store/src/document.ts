import { MAX_DOCUMENT_BYTES, type Fields } from "./contract.ts";
import { SecretStoreError } from "./errors.ts";
import { printJson } from "./json.ts";

/** The stored text of a document. @throws SecretStoreError `too_large` */
export function printDocument(path: string, fields: Fields): string {
  const text = printJson(fields);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_DOCUMENT_BYTES) {
    throw new SecretStoreError(
      "too_large",
      `cannot write "${path}": the document has ${bytes} bytes, the limit is ${MAX_DOCUMENT_BYTES}`,
    );
  }
  return text;
}

/** Nothing is stored at the path or in the folder. */
export function notFound(path: string): SecretStoreError {
  return new SecretStoreError("not_found", `nothing is stored at "${path}"`);
}

/** @param expected the version that the caller's change was based on; 0: nothing may exist */
export function versionConflict(path: string, expected: number): SecretStoreError {
  return new SecretStoreError(
    "version_conflict",
    expected === 0
      ? `cannot create "${path}": something is stored there`
      : `cannot write "${path}": version ${expected} is no longer the newest`,
    { hint: "Read it again and repeat the change." },
  );
}
