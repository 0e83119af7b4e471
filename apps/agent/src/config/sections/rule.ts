import { FORMAT_NAMES, iniDialectOf } from "@devplat/document-edit";
import { z } from "zod";
import { duration } from "@devplat/config";
import { entryName } from "./entry-name.ts";
import { mountedFile } from "./mounted-file.ts";
import { secretPath } from "./secret-path.ts";
import { systemPlatform, type Platform } from "../../platform/platform.ts";
import { windowsPathFault } from "../../platform/windows-path.ts";

/** A name that a template can write as `.name`. */
const TEMPLATE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const MODE = /^0?[0-7]{3}$/;
/** A rule's command is killed at the latest after this, in milliseconds: a cycle waits for it. */
const MAX_RUN_TIMEOUT_MS = 10 * 60_000;
/** Formats whose content has no shape that plain fields could fill: they need a template. */
const TEMPLATE_ONLY: ReadonlySet<string> = new Set(["text", "netrc", "ssh_config"]);

const fileMode = (fallback: string) =>
  z
    .unknown()
    .meta({ type: "string", pattern: MODE.source })
    .transform((value, context) => {
      if (typeof value === "string" && MODE.test(value)) return Number.parseInt(value, 8);
      // YAML 1.2 reads 0600 without quotes as the decimal number 600: guessing would set a wrong mode.
      context.addIssue({ code: "custom", message: 'expected permissions in quotes, such as "0600"' });
      return z.NEVER;
    })
    .prefault(fallback);

const targetPath = z.string().superRefine((path, context) => {
  const fault = targetPathFault(path);
  if (fault !== undefined) context.addIssue({ code: "custom", message: fault });
});

/** Where a rule's file is: on disk, or only on the filesystem mount. */
type TargetPlace =
  | { readonly path: string; readonly mount?: undefined }
  | { readonly path?: undefined; readonly mount: string };

const target = z.strictObject({
  path: targetPath.optional(),
  mount: mountedFile.optional(),
  base: targetPath.optional(),
  allow: z.array(targetPath).min(1).optional(),
  format: z.enum(FORMAT_NAMES),
  template: z.string().optional(),
  merge: z.enum(["deep", "replace"]).default("deep"),
  delete_nulls: z.boolean().default(false),
  lists: z.record(z.string(), z.string()).default({}),
  mode: fileMode("0600"),
  dir_mode: fileMode("0700"),
  on_missing: z.enum(["keep", "remove", "error"]).default("keep"),
  on_remove: z.enum(["keep", "clean"]).default("keep"),
  overwrite: z.boolean().default(false),
  tighten: z.boolean().optional(),
  allow_tracked: z.boolean().default(false),
  dialect: z.enum(["generic", "npmrc", "gitconfig", "pip", "aws"]).optional(),
});

/** One sync rule: which secrets go into which file, and how. */
export const ruleSchema = z
  .strictObject({
    name: entryName,
    description: z.string().default(""),
    key: secretPath.optional(),
    vault_key: secretPath.optional(),
    keys: z.record(z.string(), secretPath).optional(),
    target,
    run: z
      .strictObject({
        command: z.array(z.string().min(1)).min(1),
        timeout: duration({ min: 1000, max: MAX_RUN_TIMEOUT_MS }).prefault("30s"),
      })
      .optional(),
    paused: z.boolean().default(false),
    enabled: z.boolean().default(true),
  })
  .superRefine((rule, context) => {
    const fault = (path: string[], message: string): void => {
      context.addIssue({ code: "custom", path, message });
    };
    const given = [rule.key, rule.vault_key, rule.keys].filter((entry) => entry !== undefined).length;
    if (given === 0) fault([], "one of key and keys is required");
    if (given > 1) fault([], "give only one of key, vault_key and keys");
    if (rule.keys !== undefined && Object.keys(rule.keys).length === 0) fault(["keys"], "must not be empty");
    for (const name of Object.keys(rule.keys ?? {})) {
      if (!TEMPLATE_NAME.test(name)) {
        fault(["keys", name], "expected a name of letters, digits and underscores, for use in templates");
      }
    }
    const { format, template, merge, delete_nulls: deleteNulls, lists, dialect } = rule.target;
    if (template === undefined && TEMPLATE_ONLY.has(format)) {
      fault(["target", "template"], `required for the format ${format}`);
    }
    const structured = format === "yaml" || format === "json";
    if (deleteNulls && !structured) fault(["target", "delete_nulls"], "only for the formats yaml and json");
    if (Object.keys(lists).length > 0 && !structured) {
      fault(["target", "lists"], "only for the formats yaml and json");
    }
    if (dialect !== undefined && format !== "ini") fault(["target", "dialect"], "only for the format ini");
    if (format === "text" && merge === "replace") {
      fault(["target", "merge"], "the format text always replaces the whole file");
    }
    for (const [key, message] of placeFaults(rule.target)) fault(["target", ...key], message);
  })
  .transform(({ vault_key: alias, target: { path, mount, ...content }, ...rule }) => ({
    ...rule,
    key: rule.key ?? alias,
    target: {
      ...content,
      ...placeOf(path, mount),
      tighten: content.tighten ?? holdsOnlyCredentials(path ?? mount ?? "", content),
    },
    /** It came from `remote_config`, whose rules may do less. */
    remote: false,
  }));

/** Whether files of this kind hold credentials only, so that nobody else has a reason to read them. */
function holdsOnlyCredentials(
  path: string,
  { format, dialect }: Pick<z.infer<typeof target>, "format" | "dialect">,
): boolean {
  if (format === "netrc" || format === "dotenv") return true;
  return format === "ini" && (dialect ?? iniDialectOf(path)) === "npmrc";
}

/** Faults of `path` and `mount`, and of keys that only one of them can have. */
function placeFaults(given: z.infer<typeof target>): [key: readonly string[], message: string][] {
  const { path, mount, base, allow, format } = given;
  if (path === undefined && mount === undefined) return [[[], "one of path and mount is required"]];
  if (path !== undefined && mount !== undefined) return [[["mount"], "give only one of path and mount"]];
  const faults: [readonly string[], string][] = [];
  if (mount === undefined) {
    for (const [key, value] of Object.entries({ base, allow }))
      if (value !== undefined) faults.push([[key], "only for a file on the mount (target.mount)"]);
    return faults;
  }
  if (base !== undefined && format === "text")
    faults.push([["base"], "the format text replaces the whole file"]);
  const onDisk = {
    mode: given.mode !== 0o600,
    dir_mode: given.dir_mode !== 0o700,
    on_missing: given.on_missing === "remove",
    on_remove: given.on_remove !== "keep",
    overwrite: given.overwrite,
    tighten: given.tighten !== undefined,
    allow_tracked: given.allow_tracked,
  };
  for (const [key, isGiven] of Object.entries(onDisk))
    if (isGiven) faults.push([[key], "only for a file on disk (target.path)"]);
  return faults;
}

function placeOf(path: string | undefined, mount: string | undefined): TargetPlace {
  return mount === undefined ? { path: path ?? "" } : { mount };
}

export type Rule = z.infer<typeof ruleSchema>;
/** A rule whose file is only on the filesystem mount. */
export type MountedRule = Rule & { readonly target: { readonly mount: string } };
/** A rule whose file is on disk. */
export type FileRule = Rule & { readonly target: { readonly path: string } };

export function isMountedRule(rule: Rule): rule is MountedRule {
  return rule.target.mount !== undefined;
}

export function isFileRule(rule: Rule): rule is FileRule {
  return rule.target.path !== undefined;
}

/** The path of the file for people: as configured, or below `fuse.mountpoint`. */
export function targetText(rule: Rule, mountpoint: string): string {
  const { path, mount } = rule.target;
  return mount === undefined ? path : `${mountpoint}/${mount}`;
}

/** The secrets that a rule reads, as configured (a template's `secret "path"` may add more). */
export function secretPaths(rule: Rule): readonly string[] {
  return rule.keys === undefined ? [rule.key ?? ""] : [...new Set(Object.values(rule.keys))];
}

/** Whether the rule's template may read secrets that the rule does not name. */
export function mayReadOthers(rule: Rule): boolean {
  return /\bsecret\b/.test(rule.target.template ?? "");
}

/** The rule's key for people: the path, or `name=path` pairs. */
export function keyText(rule: Rule): string {
  if (rule.keys === undefined) return rule.key ?? "";
  return Object.entries(rule.keys)
    .map(([name, path]) => `${name}=${path}`)
    .join(", ");
}

/** Whether the rule owns the whole file, so that no other rule may write it. */
export function ownsWholeFile(rule: Rule): boolean {
  return rule.target.format === "text" || rule.target.merge === "replace";
}

/** The fault of a configured path, or undefined. The file behind it is checked when it is used. */
export function targetPathFault(path: string, platform: Platform = systemPlatform): string | undefined {
  if (path.includes("\0")) return "must not hold a NUL";
  const rest = belowHome(path, platform);
  if (rest === undefined && path.startsWith("~") && path !== "~")
    return "expected ~/… or an absolute path (another user's home is not supported)";
  if (rest === undefined && !platform.path.isAbsolute(path)) return "expected ~/… or an absolute path";
  const segments = (rest ?? path).split(separatorsOf(platform)).slice(rest === undefined ? 1 : 0);
  if (segments.some((segment) => segment === ".." || segment === "."))
    return "must not hold . or .. segments";
  if (segments.at(-1) === "") return "must name a file, not a folder";
  return platform.system === "win32" ? windowsPathFault(rest ?? path, rest !== undefined) : undefined;
}

/** `~/x` below the home folder; an absolute path as it is. */
export function expandHome(path: string, home: string, platform: Platform = systemPlatform): string {
  if (path === "~") return home;
  const rest = belowHome(path, platform);
  return platform.native(rest === undefined ? path : `${home}/${rest}`);
}

/** The part of a path after `~/`; undefined for another path. */
function belowHome(path: string, platform: Platform): string | undefined {
  return path.startsWith("~") && separatorsOf(platform).test(path.charAt(1)) ? path.slice(2) : undefined;
}

function separatorsOf({ path }: Platform): RegExp {
  return path.sep === "/" ? /\// : /[\\/]/;
}
