import { ConfigError, validateConfig, type ConfigProblem, type Locate } from "@devplat/config";
import { locateIn, parseConfigDocument } from "@devplat/config/document";
import { STANDARD_FUNCTION_NAMES, TemplateError, parseTemplate } from "@devplat/go-template";
import { z } from "zod";
import { ruleSchema, type Rule } from "./sections/rule.ts";
import { enrolmentsSection } from "./sections/enrolment-section.ts";
import { checkTogether, type Config } from "./schema.ts";
import { duration } from "@devplat/config";

/** Template functions that reach beyond the rule's own secret, or past the check of values. */
const LOCAL_FUNCTIONS: ReadonlySet<string> = new Set(["env", "secret", "raw"]);
/** The widest mode of a file that a remote rule makes. */
const WIDEST_REMOTE_MODE = 0o600;
const MIN_SYNC_INTERVAL_MS = 10_000;

const remoteDocument = z.strictObject({
  /** Signed documents only: never lower than the last one's. */
  serial: z.int().min(0).optional(),
  /** Signed documents only: ISO 8601; later than this the document is refused. */
  expires: z.iso.datetime({ offset: true }).optional(),
  rules: z.array(ruleSchema).default([]),
  enrolments: enrolmentsSection.default({}),
  sync: z.strictObject({ interval: duration({ min: MIN_SYNC_INTERVAL_MS }) }).optional(),
});

export interface RemoteDocument extends z.infer<typeof remoteDocument> {
  readonly locate: Locate;
}

/**
 * Reads a remote document and refuses what its trust does not cover.
 * @throws ConfigError with every fault
 */
export function parseRemote(source: string, text: string, trust: "rules" | "full"): RemoteDocument {
  const document = parseConfigDocument(source, text);
  const locate = (path: readonly PropertyKey[]) => ({ source, ...document.position(path) });
  const parsed = validateConfig(remoteDocument, document.value, locate);
  const result = { ...parsed, locate: locateIn(source, text) };
  if (trust === "full") return result;
  const problems: ConfigProblem[] = [];
  for (const [index, rule] of parsed.rules.entries()) {
    for (const { path, message } of beyondRules(rule)) {
      const key = ["rules", index, ...path];
      problems.push({ ...locate(key), key: `rules[${index}].${path.join(".")}`, message });
    }
  }
  for (const [key, enrolment] of Object.entries(parsed.enrolments)) {
    if (enrolment.engine !== "copy" || enrolment.fields === undefined) continue;
    for (const [field, template] of Object.entries(enrolment.fields)) {
      if (!usesLocalFunctions(template)) continue;
      const path = ["enrolments", key, "fields", field];
      problems.push({ ...locate(path), key: path.join("."), message: LOCAL_FUNCTION_MESSAGE });
    }
  }
  if (problems.length > 0) throw new ConfigError("config_invalid", problems);
  return { ...result, rules: parsed.rules.map((rule) => ({ ...rule, remote: true })) };
}

const LOCAL_FUNCTION_MESSAGE = "the functions env, secret and raw need remote_config.trust: full";

/** Limits of a rule that comes from a server. */
function beyondRules(rule: Rule): { readonly path: readonly string[]; readonly message: string }[] {
  const faults: { path: string[]; message: string }[] = [];
  if (rule.run !== undefined) faults.push({ path: ["run"], message: "needs remote_config.trust: full" });
  for (const key of ["mount", "base"] as const) {
    if (rule.target[key] === undefined) continue;
    faults.push({ path: ["target", key], message: "needs remote_config.trust: full" });
  }
  if ((rule.target.mode & ~WIDEST_REMOTE_MODE) !== 0) {
    faults.push({ path: ["target", "mode"], message: "wider than 0600 needs remote_config.trust: full" });
  }
  if ((rule.target.dir_mode & 0o077) !== 0) {
    faults.push({ path: ["target", "dir_mode"], message: "wider than 0700 needs remote_config.trust: full" });
  }
  if (rule.target.template !== undefined && usesLocalFunctions(rule.target.template)) {
    faults.push({ path: ["target", "template"], message: LOCAL_FUNCTION_MESSAGE });
  }
  return faults;
}

function usesLocalFunctions(template: string): boolean {
  // A template that does not parse never runs. It is the fault of one rule, not of the document.
  if (!parses(template, STANDARD_FUNCTION_NAMES)) return false;
  return !parses(
    template,
    STANDARD_FUNCTION_NAMES.filter((name) => !LOCAL_FUNCTIONS.has(name)),
  );
}

function parses(template: string, functions: readonly string[]): boolean {
  try {
    parseTemplate("remote", template, { functions });
    return true;
  } catch (error) {
    if (error instanceof TemplateError) return false;
    throw error;
  }
}

/** A configuration, and where its keys are written. */
export interface LocatedConfig {
  readonly config: Config;
  readonly locate: Locate;
}

/**
 * The configuration with a remote document over it: rules and enrolments are added or replaced by name.
 * @throws ConfigError if it would change the engine or host of a local enrolment, or does not fit the local rules
 */
export function withRemote({ config, locate }: LocatedConfig, remote: RemoteDocument): LocatedConfig {
  const replaced = new Set(remote.rules.map(({ name }) => name));
  for (const [key, enrolment] of Object.entries(remote.enrolments)) {
    const own = config.enrolments[key];
    if (own === undefined || placeOf(own) === placeOf(enrolment)) continue;
    const message = "must not change the engine or host of an enrolment of this host's configuration";
    throw new ConfigError("config_invalid", [
      { ...remote.locate(["enrolments", key]), key: `enrolments.${key}`, message },
    ]);
  }
  const kept = [...config.rules.entries()].filter(([, { name }]) => !replaced.has(name));
  const merged: Config = {
    ...config,
    sync: { ...config.sync, interval: remote.sync?.interval ?? config.sync.interval },
    rules: [...kept.map(([, rule]) => rule), ...remote.rules],
    enrolments: { ...config.enrolments, ...remote.enrolments },
  };
  const locateMerged: Locate = (path) => {
    const [section, name, ...rest] = path;
    if (section === "rules" && typeof name === "number") {
      const own = kept[name]?.[0];
      if (own !== undefined) return locate(["rules", own, ...rest]);
      return remote.locate(["rules", name - kept.length, ...rest]);
    }
    const isRemote =
      section === "enrolments" && typeof name === "string" && Object.hasOwn(remote.enrolments, name);
    return (isRemote ? remote.locate : locate)(path);
  };
  checkTogether(merged, locateMerged);
  return { config: merged, locate: locateMerged };
}

/** Engine and every address: what decides to whom credentials go. */
function placeOf(enrolment: Config["enrolments"][string]): string {
  const addresses = Object.entries(enrolment).filter(([key]) => /^(engine|host|from|url|.*_url)$/.test(key));
  return JSON.stringify(Object.fromEntries(addresses), [
    "engine",
    ...addresses.map(([key]) => key).toSorted(),
  ]);
}
