import { MAX_DOCUMENT_BYTES, type Fields } from "./contract.ts";
import { JsonError, SecretStoreError } from "./errors.ts";
import { printJson } from "./json.ts";

/** The stored text of a document. @throws SecretStoreError `too_large` */
export function printDocument(path: string, fields: Fields): string {
  const text = print(path, fields);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_DOCUMENT_BYTES) {
    throw new SecretStoreError(
      "too_large",
      `cannot write "${path}": the document has ${bytes} bytes, the limit is ${MAX_DOCUMENT_BYTES}`,
    );
  }
  return text;
}

function print(path: string, fields: Fields): string {
  try {
    return printJson(fields);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new SecretStoreError("too_large", `cannot write "${path}": the document is nested too deep`, {
      cause: error,
    });
  }
}

/** Nothing is stored at the path or in the folder. */
export function notFound(path: string): SecretStoreError {
  return new SecretStoreError("not_found", `nothing is stored at "${path}"`);
}

/**
 * @param expected the version that the caller's change was based on; 0: nothing may exist; undefined: the caller named
 *   none, and the store takes no write without
 */
export function versionConflict(path: string, expected: number | undefined): SecretStoreError {
  const found =
    expected === undefined
      ? `cannot write "${path}": the store wants to be told the version that is replaced`
      : expected === 0
        ? `cannot create "${path}": something is stored there`
        : `cannot write "${path}": version ${expected} is not the newest`;
  return new SecretStoreError("version_conflict", found, { hint: "Read it again and repeat the change." });
}
