export {
  MAX_DOCUMENT_BYTES,
  type FieldValue,
  type Fields,
  type ReadOptions,
  type SecretChange,
  type SecretDocument,
  type SecretMetadata,
  type SecretStore,
  type WriteOptions,
} from "./contract.ts";
export { JsonError, SecretStoreError, type SecretStoreErrorCode } from "./errors.ts";
export { isList, isMap, isNumber, numberOf, parseFields, parseJson, printJson } from "./json.ts";
export { checkFolder, checkPath, userRoot } from "./paths.ts";
export { openEmbeddedStore } from "./embedded/embedded-store.ts";
export { openVaultStore } from "./vault/vault-store.ts";
export { VaultClient } from "./vault/client.ts";
export { VaultRefusal } from "./vault/refusal.ts";
export type { TokenInfo } from "./vault/token-info.ts";
export type { ResponsePart } from "./vault/response.ts";
