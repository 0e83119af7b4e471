export { isDamage, mayBeDamage } from "./mirror/damage.ts";
export { SURVEYED_PREFIXES, type Fill } from "./mirror/fill.ts";
export { IdleDetector, type IdleDetectorOptions } from "./mirror/idle-detector.ts";
export type { Adoption, AdoptionResult } from "./mirror/adoption.ts";
export { createMirror, type Mirror, type MirrorParts } from "./mirror/mirror.ts";
export type { MirrorChange } from "./mirror/mirror-change.ts";
export type { MirrorContents, MirrorSharing, MirrorSnapshot } from "./mirror/mirror-sharing.ts";
export { shareHistory, type MirrorView } from "./mirror/mirror-view.ts";
export type { Mirrors } from "./mirror/mirrors.ts";
export type { Repairs } from "./mirror/repairs.ts";
export { createMirrorSet, type MirrorSet, type MirrorSetParts } from "./mirror-set.ts";
export type {
  MirrorRequest,
  MirrorResponder,
  MissingWants,
  Servability,
  Servable,
} from "./responder/mirror-responder.ts";
export type { LookupRequest, MirrorLookup, ObjectLookup } from "./responder/object-lookup.ts";
export { primeStream, type ResponseChunks } from "./responder/primed-stream.ts";
export type { RecentTips, TipSource } from "./responder/tips.ts";
export { FileMirrorStorage } from "./file-storage/file-mirror-storage.ts";
export type { FileMirrorStorageParts } from "./file-storage/parts.ts";
export type {
  CommitOptions,
  MirrorStorage,
  PackFileKind,
  RepackOptions,
  RepackResult,
  RepairResult,
  RepositoryStorage,
  RetainedRef,
  SeedFigures,
  SnapshotPack,
  StagedPack,
  StagingFolder,
  StorageChange,
  StorageSnapshot,
  StorageUsage,
  StorageVersion,
  StoredRepository,
} from "./storage/contract.ts";
export type {
  SeedFile,
  SeedKind,
  SeedMaking,
  ShownRefs,
  SoundSeedFiles,
  StoredSeed,
} from "./storage/seed.ts";
export { WANTED_PREFIX, mergeRefs } from "./storage/refs.ts";
export type { RepositoryId } from "./storage/repository-id.ts";
export { JobFailure, type JobRunner } from "./threads/job.ts";
export { createMirrorThreads, type MirrorThreads } from "./threads/mirror-threads.ts";
