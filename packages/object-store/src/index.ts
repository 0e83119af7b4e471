export { ObjectStoreError, type ObjectStoreErrorCode, type ObjectStoreErrorOptions } from "./errors.ts";
export { MAX_KEY_BYTES, checkKey } from "./object-key.ts";
export type {
  ByteRange,
  CallOptions,
  GetOptions,
  GetResult,
  ListOptions,
  ListedObject,
  ObjectInfo,
  ObjectSource,
  ObjectStore,
  OpenUpload,
  Page,
  PutLargeOptions,
  PutOptions,
  Traffic,
  WriteCondition,
  Written,
} from "./object-store.ts";
export { awsChain, fixedCredentials, type CredentialSource, type Credentials } from "./credentials.ts";
export { CircuitBreaker, type CircuitBreakerOptions, type CircuitState } from "./circuit-breaker.ts";
export { ForwardingStore } from "./forwarding-store.ts";
export {
  probeStore,
  type Ability,
  type ProbeOptions,
  type ProbeResult,
  type ProbeRow,
  type StoreAbilities,
} from "./store-probe.ts";
