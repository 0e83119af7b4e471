import { formatDuration } from "@devplat/base";
import type { Config } from "./schema.ts";
import type { Rule } from "./sections/rule.ts";

const MASK = "••••";

/** The configuration as it applies, with every default, in the form of a file: back from milliseconds and numbers. */
export function asWritten(config: Config): Record<string, unknown> {
  const { reissue_before: reissueBefore, ttl, ...mtls } = config.store.mtls;
  return {
    ...config,
    store: {
      ...config.store,
      mtls: {
        ...mtls,
        ...(ttl !== undefined && { ttl: formatDuration(ttl) }),
        reissue_before: formatDuration(reissueBefore),
      },
    },
    sync: { ...config.sync, interval: formatDuration(config.sync.interval) },
    api: {
      ...config.api,
      peer: { ...config.api.peer, token_ttl: formatDuration(config.api.peer.token_ttl) },
    },
    fuse: { ...config.fuse, cache_ttl: formatDuration(config.fuse.cache_ttl) },
    docker: { ...config.docker, cache_ttl: formatDuration(config.docker.cache_ttl) },
    agent: {
      ...config.agent,
      key_lifetime: formatDuration(config.agent.key_lifetime),
      keys: config.agent.keys.map((each) =>
        each.source === "ca" ? { ...each, ttl: formatDuration(each.ttl) } : each,
      ),
    },
    observability: { ...config.observability, interval: formatDuration(config.observability.interval) },
    ...(config.remote_config !== undefined && {
      remote_config: {
        ...config.remote_config,
        refresh_interval: formatDuration(config.remote_config.refresh_interval),
      },
    }),
    rules: config.rules.map(({ remote: _remote, ...rule }) => ({
      ...rule,
      target: writtenTarget(rule.target),
      ...(rule.run !== undefined && { run: { ...rule.run, timeout: formatDuration(rule.run.timeout) } }),
    })),
  };
}

/** A file on the mount has no keys that are about files on disk. */
function writtenTarget(target: Rule["target"]): Record<string, unknown> {
  const {
    mode,
    dir_mode: folderMode,
    on_remove: onRemove,
    overwrite,
    tighten,
    allow_tracked: tracked,
    ...rest
  } = target;
  if (target.mount !== undefined) return rest;
  return {
    ...rest,
    mode: octal(mode),
    dir_mode: octal(folderMode),
    on_remove: onRemove,
    overwrite,
    tighten,
    allow_tracked: tracked,
  };
}

/**
 * The same for the browser and the API, where others may look on: values of HTTP headers are masked, because that is
 * where a configuration may hold a credential.
 */
export function redacted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redacted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, each]) => [
    key,
    key === "headers" ? masked(each) : redacted(each),
  ]);
  return Object.fromEntries(entries) as unknown;
}

function masked(headers: unknown): unknown {
  if (typeof headers !== "object" || headers === null) return MASK;
  return Object.fromEntries(Object.keys(headers).map((name) => [name, MASK]));
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}
