export * from "./errors.ts";
export { hashObject, oidBytes, typeName, typeNumber } from "./object-format.ts";
export type { ObjectFormat, ObjectType } from "./object-format.ts";
export { isOid, type Oid } from "./oid.ts";
export { ObjectDatabase } from "./object-database.ts";
export type { GitObject, ObjectDatabaseOptions, PackedLocation, SharedDatabase } from "./object-database.ts";
export type { RawObject } from "./base-cache.ts";
export { Pack, type SharedPack } from "./pack.ts";
export type { PackEntry } from "./pack-reader.ts";
