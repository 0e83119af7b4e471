export {
  GIT_STORE_ERROR_CODES,
  GitStoreError,
  type GitStoreErrorCode,
  type GitStoreErrorDetails,
} from "./errors.ts";
export { hashObject, oidBytes, typeName, typeNumber } from "./object-format.ts";
export { READ_FLAGS } from "./read-file.ts";
export type { ObjectType } from "./object-format.ts";
export type { Oid } from "./oid.ts";
export { ObjectDatabase } from "./object-database.ts";
export { checkIndexes } from "./check-indexes.ts";
export type { GitObject, ObjectDatabaseOptions, PackedLocation, SharedDatabase } from "./object-database.ts";
export type { RawObject } from "./pack/base-cache.ts";
export { Pack, type SharedPack } from "./pack/pack.ts";
export type { PackEntry } from "./pack/pack-entry.ts";
export { parseCommit, type Commit } from "./commit.ts";
export { MODE_GITLINK, MODE_SYMLINK, MODE_TREE, TreeCursor } from "./tree.ts";
export { parseTag, type Tag } from "./tag.ts";
export { indexPack, type IndexedPack, type IndexPackOptions } from "./index-pack/index-pack.ts";
export type { IndexPackLimits } from "./index-pack/limits.ts";
export { Repository, type Head, type InitOptions } from "./repository/repository.ts";
export type { Ref } from "./repository/packed-refs.ts";
export { isRefName } from "./repository/ref-name.ts";
export type { Lock, LockOptions } from "./repository/lock-file.ts";
export { temporaryName } from "./repository/leftovers.ts";
export { syncFile } from "./durable.ts";
export { onSlice } from "./slices.ts";
export { IndexWorkers, type IndexWorkersOptions } from "./index-pack/workers.ts";
export { ReachabilityIndex, type CoverOptions } from "./reachability/reachability-index.ts";
export { finishInSlices } from "./slices.ts";
export { ReachableSet } from "./reachability/reachable-set.ts";
export type { ObjectGraph, ObjectGraphOptions } from "./reachability/object-graph.ts";
export { recycleChunk } from "./serve/chunk-pool.ts";
export { MAX_REQUEST_OIDS, type FetchContext } from "./serve/fetch-context.ts";
export type { PackTotals } from "./serve/pack-writer.ts";
export type { RepackOptions, PreparedRepack } from "./repack/repack.ts";
