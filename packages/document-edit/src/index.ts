export {
  FORMAT_NAMES,
  INI_DIALECTS,
  type DocumentFormat,
  type EditMap,
  type EditOptions,
  type EditResult,
  type EditValue,
  type FormatName,
  type IniDialect,
  type LeafPath,
} from "./contract.ts";
export { DocumentEditError, type DocumentEditErrorCode } from "./errors.ts";
export { isListEntryLeaf } from "./core/merge.ts";
export { equalValues, sameShape } from "./core/value.ts";
export { iniDialectOf } from "./ini/dialect.ts";
export { documentFormat } from "./formats.ts";
