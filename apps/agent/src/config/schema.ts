import { ConfigError, type ConfigProblem, type Locate } from "@devplat/config";
import { z } from "zod";
import {
  expandHome,
  isFileRule,
  isMountedRule,
  ownsWholeFile,
  ruleSchema,
  secretPaths,
  targetPathFault,
  type FileRule,
  type MountedRule,
} from "./sections/rule.ts";
import { secretsWithNamesOf } from "./sections/mounted-file.ts";
import { duration } from "@devplat/config";
import { dockerSection } from "./sections/docker-section.ts";
import { enrolmentsSection } from "./sections/enrolment-section.ts";
import { observabilitySection } from "./sections/observability-section.ts";
import { remoteSection } from "./sections/remote-section.ts";
import { secretFolderPath } from "./sections/secret-folder-path.ts";
import { sshAgentSection } from "./sections/ssh-agent-section.ts";
import { sshSection } from "./sections/ssh-section.ts";
import { storeSection } from "./sections/store-section.ts";
import { apiSection, fuseSection, gitCredential } from "./sections/surface-sections.ts";

// Compiling a checker takes longer than the one use that a command makes of it.
z.config({ jitless: true });

/** Polling a store more often than this is load without use: 10 s, in milliseconds. */
const MIN_SYNC_INTERVAL_MS = 10_000;

/** The UI shows secrets, so no configuration can put it on another address. Port 0 takes any free port. */
const LOOPBACK_LISTEN = /^(?:127\.0\.0\.1|\[::1\]|localhost):\d{1,5}$/;

const syncSection = z.strictObject({
  interval: duration({ min: MIN_SYNC_INTERVAL_MS }).prefault("15m"),
  allowed_targets: z
    .array(
      z.string().superRefine((path, context) => {
        const fault = path === "~" || path === "/" ? undefined : targetPathFault(path);
        if (fault !== undefined) context.addIssue({ code: "custom", message: fault });
      }),
    )
    .default(["~"]),
});

const web = z.strictObject({
  enabled: z.boolean().default(false),
  listen: z
    .string()
    .regex(LOOPBACK_LISTEN, { message: "must be on loopback: 127.0.0.1, [::1] or localhost, with a port" })
    .default("127.0.0.1:8200"),
  login_text: z.string().default(""),
  secret_view_text: z.string().default(""),
  editable_paths: z.array(secretFolderPath).default([]),
  require_unlock: z.union([z.literal("auto"), z.boolean()]).default("auto"),
});

/** The whole configuration file. Durations are milliseconds, file modes are numbers. */
export const configSchema = z
  .strictObject({
    bypass_system_config: z.boolean().default(false),
    store: storeSection.prefault({}),
    sync: syncSection.prefault({}),
    web: web.prefault({}),
    api: apiSection.prefault({}),
    fuse: fuseSection.prefault({}),
    docker: dockerSection.prefault({}),
    agent: sshAgentSection.prefault({}),
    ssh: sshSection.prefault({}),
    git_credentials: z.array(gitCredential).default([]),
    observability: observabilitySection.prefault({}),
    rules: z.array(ruleSchema).default([]),
    enrolments: enrolmentsSection.default({}),
    remote_config: remoteSection.optional(),
  })
  .superRefine((config, context) => {
    if (config.api.peer.ask !== "never" && !config.web.enabled && !config.api.enabled) {
      const message =
        "needs web.enabled: true or api.enabled: true, because you allow or refuse it on a page or by a command";
      context.addIssue({ code: "custom", path: ["api", "peer", "ask"], message });
    }
    for (const { index, path, message } of ruleConflicts(config)) {
      context.addIssue({ code: "custom", path: ["rules", index, ...path], message });
    }
  });

export type Config = z.infer<typeof configSchema>;

/**
 * Checks rules that come from several documents together.
 * @param locate finds the place of a key by the rule's index
 * @throws ConfigError
 */
export function checkTogether(config: Config, locate: Locate): void {
  const problems = ruleConflicts(config).map(({ index, path, message }): ConfigProblem => {
    const key = ["rules", config.rules[index]?.name ?? "", ...path].join(".");
    return { ...locate(["rules", index, ...path]), key, message };
  });
  if (problems.length > 0) throw new ConfigError("config_invalid", problems);
}

interface Conflict {
  readonly index: number;
  readonly path: readonly string[];
  readonly message: string;
}

/** Faults between rules: names given twice, and rules that cannot share a file. Faults of files on the mount. */
function ruleConflicts(config: Config): Conflict[] {
  const { rules } = config;
  const conflicts: Conflict[] = [];
  const names = new Set<string>();
  const byPath = new Map<string, FileRule>();
  for (const [index, rule] of rules.entries()) {
    if (names.has(rule.name))
      conflicts.push({ index, path: ["name"], message: "another rule has this name" });
    names.add(rule.name);
    if (!rule.enabled) continue;
    if (!isFileRule(rule)) continue;
    // The home folder itself does not matter here: it is the same one for every rule.
    const path = expandHome(rule.target.path, "~");
    const other = byPath.get(path);
    if (other === undefined) {
      byPath.set(path, rule);
      continue;
    }
    const fault = sharingFault(rule, other);
    if (fault !== undefined) {
      conflicts.push({ index, path: ["target", "path"], message: `rule '${other.name}' ${fault}` });
    }
  }
  return [...conflicts, ...mountedConflicts(config)];
}

/** Faults of files on the mount: two with one name, names of secrets that the configuration has, places on the mount itself. */
function mountedConflicts({ rules, enrolments, fuse }: Config): Conflict[] {
  const conflicts: Conflict[] = [];
  const active = [...rules.entries()].filter(([, { enabled }]) => enabled);
  const secrets = new Set([...Object.keys(enrolments), ...active.flatMap(([, rule]) => secretPaths(rule))]);
  const mountpoint = expandHome(fuse.mountpoint, "~");
  const known: MountedRule[] = [];
  for (const [index, rule] of active) {
    if (!isMountedRule(rule)) continue;
    const fault = (key: string, message: string): void => {
      conflicts.push({ index, path: ["target", key], message });
    };
    const { mount, base, allow = [] } = rule.target;
    const other = known.find(({ target }) => isOnWay(target.mount, mount) || isOnWay(mount, target.mount));
    if (other !== undefined) fault("mount", `rule '${other.name}' has the file ${other.target.mount}`);
    known.push(rule);
    const secret = secretsWithNamesOf(mount, fuse.layout).find((path) => secrets.has(path));
    if (secret !== undefined) fault("mount", `the secret ${secret} has this name on the mount`);
    const below = [...secrets].find((path) => path.startsWith(`${mount}/`));
    if (below !== undefined) fault("mount", `the secret ${below} needs a folder of this name on the mount`);
    const isOnMount = (path: string): boolean => isOnWay(mountpoint, expandHome(path, "~"));
    if (base !== undefined && isOnMount(base)) fault("base", "must not be on the mount itself");
    if (allow.some(isOnMount)) fault("allow", "a program must not be on the mount itself");
  }
  return conflicts;
}

/** Whether a path is another one or leads through it. */
function isOnWay(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** Why two rules cannot write one file, as the end of a sentence about the first; undefined if they can. */
export function sharingFault(rule: FileRule, other: FileRule): string | undefined {
  if (ownsWholeFile(rule) || ownsWholeFile(other)) return "has the same file, and one of them owns it whole";
  if (rule.target.format !== other.target.format) return "has the same file with another format";
  if (rule.target.mode !== other.target.mode) return "has the same file with another mode";
  if (rule.target.dialect !== other.target.dialect) return "has the same file with another dialect";
  return undefined;
}
