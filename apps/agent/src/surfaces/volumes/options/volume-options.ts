import { parseDuration } from "@devplat/base";
import { SecretStoreError, checkPath } from "@devplat/secret-store";
import { MAX_CACHE_TTL_MS } from "../../../config/sections/docker-section.ts";
import { VolumeError } from "../errors/volume-error.ts";

/** A volume is filled with these secrets in this form. */
export interface VolumeOptions {
  /** Paths of secrets, and of folders, which end in a slash. */
  readonly secrets: readonly string[];
  /** `json`: one file for each secret. `fields`: a folder for each secret, with one file for each field. */
  readonly layout: "json" | "fields";
  /** Permission bits of the files: read bits only. */
  readonly mode: number;
  /** Owner and group of the files; undefined: those of the daemon. */
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  /** Interval between looks while the store reports no changes, in milliseconds; undefined: `docker.cache_ttl`. */
  readonly ttlMs: number | undefined;
}

/** Docker's own pattern (moby, daemon/names: RestrictedNamePattern), no longer than a file name. */
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,254}$/;
const MAX_SECRETS_ENTRIES = 100;
const MIN_TTL_MS = 1000;
const DEFAULT_MODE = 0o400;
const READ_BITS = 0o444;
/** The largest number of a user or group (`(uid_t) -1` means none). */
const MAX_ID = 2 ** 32 - 2;

const OPTIONS = ["secrets", "layout", "mode", "uid", "gid", "ttl"] as const;
type OptionName = (typeof OPTIONS)[number];

/** @throws VolumeError `name_invalid` */
export function checkVolumeName(name: string): void {
  if (NAME.test(name)) return;
  const shown = JSON.stringify(name.slice(0, 100));
  throw new VolumeError("name_invalid", `the volume name ${shown} cannot be used`, {
    hint: "A name has 2 to 255 letters, digits, dots, dashes and underscores, and begins with a letter or digit.",
  });
}

/**
 * Reads the options of `docker volume create -o`.
 * @param isRoot whether the daemon can give files to other users
 * @throws VolumeError `option_invalid`, which names the option
 */
export function parseVolumeOptions(
  options: Readonly<Record<string, string>>,
  isRoot: boolean = process.geteuid?.() === 0,
): VolumeOptions {
  const unknown = Object.keys(options).find((name) => !OPTIONS.some((known) => known === name));
  if (unknown !== undefined) {
    throw new VolumeError(
      "option_invalid",
      `there is no volume option ${JSON.stringify(unknown.slice(0, 100))}`,
      {
        hint: `The options are ${OPTIONS.join(", ")}.`,
      },
    );
  }
  const valueOf = (name: OptionName): string | undefined =>
    Object.hasOwn(options, name) ? options[name] : undefined;
  return {
    secrets: secretsOf(valueOf("secrets")),
    layout: layoutOf(valueOf("layout")),
    mode: modeOf(valueOf("mode")),
    uid: idOf("uid", valueOf("uid"), isRoot),
    gid: idOf("gid", valueOf("gid"), isRoot),
    ttlMs: ttlOf(valueOf("ttl")),
  };
}

function secretsOf(text: string | undefined): readonly string[] {
  if (text === undefined || text === "")
    refuse("secrets", "is missing", "Use -o secrets=demo/registry or -o secrets=demo/.");
  const entries = [...new Set(text.split(","))];
  if (entries.length > MAX_SECRETS_ENTRIES) refuse("secrets", `names more than ${MAX_SECRETS_ENTRIES} paths`);
  for (const entry of entries) {
    if (entry === "/")
      refuse("secrets", "cannot be / alone, which is every secret", "Name folders, such as demo/.");
    try {
      checkPath(entry.replace(/\/$/, ""));
    } catch (error) {
      if (error instanceof SecretStoreError) refuse("secrets", `is not a list of paths: ${error.message}`);
      throw error;
    }
  }
  return entries;
}

function layoutOf(text = "json"): VolumeOptions["layout"] {
  if (text === "json" || text === "fields") return text;
  return refuse("layout", "is neither json nor fields");
}

function modeOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_MODE;
  if (!/^0?[0-7]{3}$/.test(text)) refuse("mode", "is not an octal mode", "Use a mode such as 0444.");
  const mode = Number.parseInt(text, 8);
  if (mode === 0 || (mode & ~READ_BITS) !== 0)
    refuse("mode", "may have read bits only", "Use a mode such as 0444.");
  return mode;
}

function idOf(name: "uid" | "gid", text: string | undefined, isRoot: boolean): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,10}$/.test(text) || Number(text) > MAX_ID)
    refuse(name, "is not a number of a user or group");
  if (!isRoot)
    refuse(name, "needs a daemon that runs as root", "Use -o mode=0444 for containers of other users.");
  return Number(text);
}

function ttlOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  if (ms === undefined) refuse("ttl", "is not a duration", "Use a duration such as 30s.");
  if (ms < MIN_TTL_MS || ms > MAX_CACHE_TTL_MS) refuse("ttl", "must be from 1s to 10m");
  return ms;
}

function refuse(name: OptionName, problem: string, hint?: string): never {
  throw new VolumeError(
    "option_invalid",
    `the volume option ${name} ${problem}`,
    hint === undefined ? {} : { hint },
  );
}
