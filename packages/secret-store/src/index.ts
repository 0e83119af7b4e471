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
export { openVaultStore, type VaultStoreOptions } from "./vault/vault-store.ts";
export { VaultClient, type VaultClientOptions, type VaultRequest } from "./vault/client.ts";
export { VaultRefusal } from "./vault/refusal.ts";
export type { TokenInfo } from "./vault/token-info.ts";
export type { ResponsePart } from "./vault/response.ts";
export { parseAddress } from "./vault/address.ts";
