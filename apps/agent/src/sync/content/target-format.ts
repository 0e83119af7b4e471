import {
  documentFormat,
  iniDialectOf,
  type DocumentFormat,
  type FormatName,
  type IniDialect,
} from "@devplat/document-edit";

/** The editor of a target's format. The name of an ini file determines its flavour, unless the rule sets it. */
export function formatOf(target: {
  readonly path?: string | undefined;
  readonly mount?: string | undefined;
  readonly format: FormatName;
  readonly dialect?: IniDialect | null | undefined;
}): DocumentFormat {
  const dialect = target.dialect ?? iniDialectOf(target.path ?? target.mount ?? "");
  return documentFormat(target.format, { dialect });
}
