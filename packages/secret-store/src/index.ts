export {
  MAX_DOCUMENT_BYTES,
  type FieldValue,
  type Fields,
  type LosslessNumber,
  type ReadOptions,
  type SecretChange,
  type SecretDocument,
  type SecretMetadata,
  type SecretStore,
  type WriteOptions,
} from "./contract.ts";
export {
  JsonError,
  SECRET_STORE_ERROR_CODES,
  SecretStoreError,
  type SecretStoreErrorCode,
} from "./errors.ts";
export {
  MAX_JSON_DEPTH,
  isList,
  isMap,
  isNumber,
  numberOf,
  parseFields,
  parseJson,
  printJson,
} from "./json.ts";
export { checkFolder, checkPath, userRoot, type UserRoot } from "./paths.ts";
export { openEmbeddedStore, type EmbeddedStoreOptions } from "./embedded/embedded-store.ts";
