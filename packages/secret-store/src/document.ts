import { MAX_DOCUMENT_BYTES, type Fields } from "./contract.ts";
import { JsonError, SecretStoreError } from "./errors.ts";
import { printJson } from "./json.ts";

/** Text of a document for the store. @throws SecretStoreError `too_large` */
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

/** Error for a path or folder that does not exist. */
export function notFound(path: string): SecretStoreError {
  return new SecretStoreError("not_found", `nothing is stored at "${path}"`);
}

/**
 * @param expected version on which the caller's change is based. 0: the secret must not exist. Undefined: the caller gave
 *   none, and the store requires one
 */
export function versionConflict(path: string, expected: number | undefined): SecretStoreError {
  const found =
    expected === undefined
      ? `cannot write "${path}": the store requires the version to replace`
      : expected === 0
        ? `cannot create "${path}": it exists already`
        : `cannot write "${path}": version ${expected} is not the newest`;
  return new SecretStoreError("version_conflict", found, { hint: "Read it again and repeat the change." });
}
