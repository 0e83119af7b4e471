import type { DocumentFormat, FormatName, IniDialect } from "./contract.ts";
import { SurgicalFormat } from "./core/format.ts";
import { DOTENV_VALUES, openDotenv } from "./dotenv/dotenv.ts";
import { iniValues, openIni } from "./ini/ini.ts";
import { openJson } from "./json/json.ts";
import { openNetrc } from "./netrc/netrc.ts";
import { openProperties } from "./properties/properties.ts";
import { refuseUnusedValues } from "./ssh-config/first-value.ts";
import { openSshConfig, SSH_CONFIG_VALUES } from "./ssh-config/ssh-config.ts";
import { textFormat } from "./text/text.ts";
import { openToml } from "./toml/toml.ts";
import { openYaml } from "./yaml/yaml.ts";

const FORMATS: Readonly<Record<Exclude<FormatName, "ini">, DocumentFormat>> = {
  dotenv: new SurgicalFormat("dotenv", openDotenv, DOTENV_VALUES),
  json: new SurgicalFormat("json", openJson),
  netrc: new SurgicalFormat("netrc", openNetrc),
  properties: new SurgicalFormat("properties", openProperties, { quotes: false }),
  ssh_config: new SurgicalFormat("ssh_config", openSshConfig, SSH_CONFIG_VALUES, refuseUnusedValues),
  text: textFormat,
  toml: new SurgicalFormat("toml", openToml),
  yaml: new SurgicalFormat("yaml", openYaml),
};

/** Options of a format. */
export interface FormatOptions {
  /** Dialect, only for ini. Default `generic`. `iniDialectOf` finds the dialect of a path. */
  readonly dialect?: IniDialect | undefined;
}

/** The format with this name. */
export function documentFormat(name: FormatName, options: FormatOptions = {}): DocumentFormat {
  if (name === "ini") {
    const dialect = options.dialect ?? "generic";
    return new SurgicalFormat("ini", openIni(dialect), iniValues(dialect), undefined, dialect);
  }
  return FORMATS[name];
}
