import { countOf, flagOf, textOf, textsOf, UsageError, type Options } from "@devplat/cli";
import { ConfigError, validateConfig } from "@devplat/config";
import { remoteEditBody } from "../../surfaces/forwards/remote-request.ts";

/** Word for an empty list. */
const NONE = "none";

/** Keys of a remote by the options that set them. */
const KEYS = {
  socket: "remote_socket",
  port: "port",
  user: "user",
  "proxy-jump": "proxy_jump",
  offers: "offers",
  policies: "policies",
  "policies-strict": "policies_strict",
  "token-ttl": "token_ttl",
  ask: "ask",
  lend: "lend",
} as const;
type Setting = keyof typeof KEYS;
const SETTINGS = Object.keys(KEYS) as Setting[];

/** Settings of a remote as the daemon's API takes them. */
export type RemoteSettings = Readonly<Record<string, unknown>>;

/**
 * The settings that the options of `ssh add` or `ssh edit` name. Empty if there are none.
 * @param command for the help
 * @throws UsageError, before anything is sent. It quotes no value
 */
export function settingsOf(options: Options, command: string): RemoteSettings {
  const given = SETTINGS.flatMap((name) => {
    const value = valueOf(options, name);
    return value === undefined ? [] : [[KEYS[name], value] as const];
  });
  const settings: Record<string, unknown> = Object.fromEntries(given);
  for (const name of textsOf(options, "reset") as readonly Setting[]) {
    if (KEYS[name] in settings)
      throw new UsageError(`--${name} and --reset ${name} exclude each other`, command);
    settings[KEYS[name]] = null;
  }
  if (flagOf(options, "enable")) settings["enabled"] = true;
  if (flagOf(options, "disable")) settings["enabled"] = false;
  check(settings, command);
  return settings;
}

function valueOf(options: Options, name: Setting): unknown {
  switch (name) {
    case "port":
      return countOf(options, name);
    case "policies-strict":
      return flagOf(options, name) ? true : undefined;
    case "offers":
    case "policies":
      return listOf(textOf(options, name));
    default:
      return textOf(options, name);
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
    const faults = error.problems.map(({ key, message }) => `${optionOf(key)}: ${message}`);
    throw new UsageError(faults.join("; "), command);
  }
}

/** The option of a key such as `offers[0]`. */
function optionOf(key: string): string {
  const [name = ""] = key.split("[", 1);
  return `--${SETTINGS.find((each) => KEYS[each] === name) ?? name}`;
}
