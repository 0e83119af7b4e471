import { countOf, flagOf, textOf, textsOf, UsageError, type Options } from "@devplat/cli";
import { ConfigError, validateConfig } from "@devplat/config";
import { REMOTE_SETTING_NAMES, REMOTE_SETTINGS, type RemoteSetting } from "../../remote-settings.ts";
import { remoteEditBody } from "../../surfaces/forwards/remote-request.ts";

/** Word for an empty list. */
const NONE = "none";

/** Settings of a remote as the daemon's API takes them. */
export type RemoteSettings = Readonly<Record<string, unknown>>;

/**
 * The settings that the options of `ssh add` or `ssh edit` name. Empty if there are none.
 * @param command for the help
 * @throws UsageError, before anything is sent. It quotes no value
 */
export function settingsOf(options: Options, command: string): RemoteSettings {
  const given = REMOTE_SETTING_NAMES.flatMap((key) => {
    const value = valueOf(options, key);
    return value === undefined ? [] : [[key, value] as const];
  });
  const settings: Record<string, unknown> = Object.fromEntries(given);
  for (const name of textsOf(options, "reset")) {
    const key = REMOTE_SETTING_NAMES.find((each) => REMOTE_SETTINGS[each].option === name) ?? name;
    if (key in settings) throw new UsageError(`--${name} and --reset ${name} exclude each other`, command);
    settings[key] = null;
  }
  if (flagOf(options, "enable")) settings["enabled"] = true;
  if (flagOf(options, "disable")) settings["enabled"] = false;
  check(settings, command);
  return settings;
}

function valueOf(options: Options, key: RemoteSetting): unknown {
  const { option, kind } = REMOTE_SETTINGS[key];
  switch (kind) {
    case "number":
      return countOf(options, option);
    case "flag":
      return flagOf(options, option) ? true : undefined;
    case "list":
      return listOf(textOf(options, option));
    default:
      return textOf(options, option);
  }
}

function listOf(text: string | undefined): readonly string[] | undefined {
  if (text === undefined || text === NONE) return text && [];
  return text.split(",").map((each) => each.trim());
}

/** The daemon checks them again. */
function check(settings: RemoteSettings, command: string): void {
  try {
    validateConfig(remoteEditBody, settings, () => ({ source: "", line: 0, column: 0 }));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const faults = error.problems.map(({ key, message }) => `${optionOf(key)}: ${message}${noneFor(key)}`);
    throw new UsageError(faults.join("; "), command);
  }
}

/** The option of a key such as `offers[0]`. */
function optionOf(key: string): string {
  const setting = settingOf(key);
  return `--${setting === undefined ? key.split("[", 1)[0] : REMOTE_SETTINGS[setting].option}`;
}

/** The word for an empty list, for an entry of a list. */
function noneFor(key: string): string {
  const setting = settingOf(key);
  const isList = setting !== undefined && REMOTE_SETTINGS[setting].kind === "list";
  return isList ? `, or ${NONE} alone for an empty list` : "";
}

function settingOf(key: string): RemoteSetting | undefined {
  const [name = ""] = key.split("[", 1);
  return REMOTE_SETTING_NAMES.find((each) => each === name);
}
