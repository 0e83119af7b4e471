import { silentLogger, systemClock, type Clock } from "@devplat/base";
import { openEmbeddedStore, userRoot, type FieldValue, type SecretStore } from "@devplat/secret-store";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { CycleResult } from "../status.ts";
import { findPlaces, type Places } from "../agent-files/places.ts";
import { Backups } from "./target/backups.ts";
import { SyncEngine } from "./engine.ts";
import { InPlaceJournal } from "./target/in-place.ts";
import { MountedFiles } from "./mounted/mounted-files.ts";
import type { MountPlace } from "./mounted/mount-place.ts";
import { Renderer } from "./content/rule-content.ts";
import { ruleSchema, type Rule } from "../config/sections/rule.ts";
import { StateFile } from "./state.ts";
import { TargetPolicy } from "./target/target-policy.ts";
import { RETRY_ALL } from "./retry-scope.ts";

/** A home folder with an embedded store, for tests of the sync engine. */
export interface Workspace {
  readonly home: string;
  readonly places: Places;
  readonly store: SecretStore;
  /** Writes a secret of plain fields. */
  put(path: string, fields: Record<string, FieldValue>): Promise<void>;
  /** Writes a file below the home folder and gives its path. */
  file(name: string, content: string, mode?: number): Promise<string>;
  read(name: string): Promise<string>;
  /** An engine as a fresh process would have it, on the state that is on disk. */
  engine(
    rules: readonly unknown[],
    options?: EngineOptions,
  ): Promise<{ engine: SyncEngine; state: StateFile }>;
  /** One cycle of such an engine, over every rule. */
  cycle(rules: readonly unknown[], options?: EngineOptions): Promise<CycleResult>;
  /** Error of a rule in the state on disk. */
  errorOf(rule: string): Promise<string | null>;
  remove(): Promise<void>;
}

export interface EngineOptions {
  readonly clock?: Clock;
  readonly store?: SecretStore;
  readonly environment?: NodeJS.ProcessEnv;
  readonly allowed?: readonly string[];
  /** `fuse.enabled`. Default true. */
  readonly mounted?: boolean;
}

/** A rule as the configuration would have it. */
export function rule(definition: unknown): Rule {
  return ruleSchema.parse(definition);
}

export async function workspace(): Promise<Workspace> {
  const home = await mkdtemp(join(tmpdir(), "agent-sync-"));
  const places = findPlaces({ HOME: home });
  const root = userRoot({ mount: "kv", prefix: "users/", username: "tester" });
  await mkdir(dirname(places.data), { recursive: true });
  const store = await openEmbeddedStore({ folder: places.data, root });
  const engine: Workspace["engine"] = async (
    rules,
    { clock = systemClock, store: other, environment = {}, allowed = ["~"], mounted = true } = {},
  ) => {
    const mount: MountPlace = {
      mountpoint: mounted ? join(home, ".daemon") : undefined,
      remedy: "turn it on",
      layout: "json",
    };
    const state = await StateFile.open(places.state);
    const hash = (text: string): string => state.hmac(text);
    const renderer = new Renderer({ environment, username: "tester", hash });
    const paused = { read: () => Promise.resolve(new Set<string>()) };
    const parts = {
      store: other ?? store,
      state,
      renderer,
      mounted: new MountedFiles({ store: other ?? store, renderer, paused, home, logger: silentLogger }),
      targets: new TargetPolicy(places, allowed, []),
      journal: new InPlaceJournal(places.state),
      backups: new Backups(places.state),
      paused,
      clock,
      logger: silentLogger,
      home,
    };
    return { engine: new SyncEngine(parts, rules.map(rule), mount), state };
  };
  return {
    home,
    places,
    store,
    put: async (path, fields) => void (await store.write(path, new Map(Object.entries(fields)))),
    file: async (name, content, mode = 0o600) => {
      const path = join(home, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content, { mode });
      return path;
    },
    read: (name) => readFile(join(home, name), "utf8"),
    engine,
    cycle: async (rules, options = {}) =>
      (await engine(rules, options)).engine.cycle(new AbortController().signal, { retry: RETRY_ALL }),
    errorOf: async (name) => (await engine([])).state.document.rules[name]?.error ?? null,
    remove: async () => {
      await store.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** A rule for a yaml file. */
export const yaml = (
  name: string,
  key: string,
  path = "~/f.yaml",
  target: object = {},
  more: object = {},
): unknown => ({
  name,
  key,
  target: { path, format: "yaml", ...target },
  ...more,
});
/** A file with what is ours and what is not. */
export const EXISTING = "# mine\na: 1   # one\ntoken: old\nlist: [x,  y]\n";
