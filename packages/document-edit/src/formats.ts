import type { DocumentFormat, FormatName, IniDialect } from "./contract.ts";
import { SurgicalFormat } from "./core/format.ts";
import { DocumentEditError } from "./errors.ts";
import { openJson } from "./json/json.ts";
import { openNetrc } from "./netrc/netrc.ts";
import { textFormat } from "./text/text.ts";
import { openYaml } from "./yaml/yaml.ts";

const FORMATS: Partial<Record<FormatName, DocumentFormat>> = {
  json: new SurgicalFormat("json", openJson),
  netrc: new SurgicalFormat("netrc", openNetrc),
  text: textFormat,
  yaml: new SurgicalFormat("yaml", openYaml),
};

/** What a format has to know besides its name. */
export interface FormatOptions {
  /** ini only; default `generic`. `iniDialectOf` tells it from a path. */
  readonly dialect?: IniDialect;
}

/** The format of that name. */
export function documentFormat(name: FormatName, _options: FormatOptions = {}): DocumentFormat {
  const format = FORMATS[name];
  if (format === undefined) throw new DocumentEditError("unsupported", `the format ${name} is not built yet`);
  return format;
}
