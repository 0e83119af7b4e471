import {
  documentFormat,
  iniDialectOf,
  type DocumentFormat,
  type FormatName,
  type IniDialect,
} from "@devplat/document-edit";

/** The editor of a target's format. The flavour of an ini file is told by its name unless the rule says it. */
export function formatOf(target: {
  readonly path: string;
  readonly format: FormatName;
  readonly dialect?: IniDialect | null | undefined;
}): DocumentFormat {
  const dialect = target.dialect ?? iniDialectOf(target.path);
  return documentFormat(target.format, { dialect });
}
