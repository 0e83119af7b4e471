export { IdleDetector } from "./idle-detector.ts";
export { RepositoryStore, SURVEYED_PREFIXES, type Fill, type StoreView } from "./mirror.ts";
export { PackStores, type PackStoresOptions } from "./mirrors.ts";
export { begin, isDamage } from "./primed-stream.ts";
export type { RepositoryId } from "./repository-id.ts";
export { OwnAnswers, type OwnRequest, type OwnVerdict } from "./responder.ts";
export { FormerTips } from "./storage/retained-refs.ts";
export { ProofFailure, ProofThread } from "./threads/check-thread.ts";
export type { MirroredRepository, RecentTips, TipSource } from "./tips.ts";
