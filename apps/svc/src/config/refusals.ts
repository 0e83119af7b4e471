import { isLoopbackHost } from "@devplat/web-kit/origin";
import { formatListen, isLoopbackAddress } from "./listen.ts";
import { SvcError } from "../errors.ts";
import { configSchema, type Config } from "./schema.ts";

/** 64 random digits hold fewer different ones less than once in a million. */
const LEAST_DIGITS = 9;

/**
 * Refuses configurations that are well-formed, but must not be started with.
 *
 * @throws SvcError `config_refused`, one line
 */
export function refuseUnusable(config: Config): void {
  refuseUnusableBucket(config);
  const { client_id: clientId, client_secret: clientSecret } = config.host;
  if ((clientId === undefined) !== (clientSecret === undefined)) {
    throw refused("host.client_id and host.client_secret belong together: set both, or none");
  }
  if ((config.host.app_id === undefined) !== (config.host.private_key === undefined)) {
    throw refused("host.app_id and host.private_key belong together: set both, or none");
  }
  if (config.host.kind === "gitea" && config.host.app_id !== undefined) {
    throw refused("host.app_id is set, but Gitea knows no apps: remove it to start");
  }
  if (config.server.proxy_protocol && config.server.trusted_proxies.length === 0) {
    throw refused(
      "server.proxy_protocol needs server.trusted_proxies: who may say where a connection is from",
    );
  }
  const { accel, accel_secret: accelSecret } = config.server;
  if (accel !== undefined && accelSecret === undefined) {
    throw refused(
      "server.accel needs server.accel_secret, by which the proxy in front is known: make one with openssl rand -hex 32",
    );
  }
  const address = config.server.listen;
  const explicit = address.kind === "tcp" && address.host !== undefined;
  if (config.dev.mode && !config.dev.mode_unsafe && explicit && !isLoopbackAddress(address)) {
    throw refused(
      `server.listen is ${formatListen(address)}, which other machines can reach, and development mode lets anyone ` +
        "log in as anyone: listen on a loopback address, or set SVC_DEV_MODE_UNSAFE=true",
    );
  }
}

/**
 * Refuses settings of the bucket that do not fit together.
 *
 * @throws SvcError `config_refused`, one line
 */
export function refuseUnusableBucket({ cache, encryption, database, dev }: Config): void {
  if (cache.object_bucket === undefined) return;
  if ((cache.object_access_key_id === undefined) !== (cache.object_secret_access_key === undefined)) {
    throw refused(
      "cache.object_access_key_id and cache.object_secret_access_key belong together: set both, or none",
    );
  }
  if (cache.object_encryption_key_id !== undefined && cache.object_encryption !== "sse-kms") {
    throw refused("cache.object_encryption_key_id needs cache.object_encryption sse-kms");
  }
  const isGenerated = dev.mode && encryption.key === undefined && database.driver !== "vault";
  if (cache.object_key === undefined && isGenerated) {
    throw refused(
      "cache.object_bucket needs a key that other instances have too, and development mode generates one for this " +
        "machine only: set cache.object_key (openssl rand -hex 32)",
    );
  }
}

/** Warnings about settings that are missing or have no effect; one line each. */
export function ineffective(config: Config): string[] {
  const warnings: string[] = [];
  if (config.host.client_id === undefined && !config.dev.mode) {
    warnings.push("host.client_id is not set: nobody can sign in");
  }
  if (!config.dev.mode && config.admins.length === 0) {
    warnings.push("admins is empty: nobody can list repositories or see the audit trail");
  }
  if (!config.dev.mode && config.host.client_id !== undefined && config.server.base_url === undefined) {
    warnings.push("server.base_url is not set: logins end on this machine only, at localhost");
  }
  if (config.dev.mode_unsafe && !config.dev.mode) {
    warnings.push("dev.mode_unsafe has no effect without dev.mode");
  }
  return [...warnings, ...unwise(config)];
}

/** Settings with which the service works, and which few would want if they saw what they mean. */
function unwise(config: Config): string[] {
  const { server, host, encryption, dev, cache } = config;
  const warnings: string[] = [];
  if (server.accel === undefined && (server.accel_secret ?? cache.accel_group) !== undefined) {
    warnings.push("server.accel_secret and cache.accel_group have no effect without server.accel");
  }
  if (server.accel !== undefined && !cache.enabled) {
    warnings.push("server.accel has no effect without cache.enabled");
  }
  const { listen } = server;
  const isLoopback =
    isLoopbackAddress(listen) || (dev.mode && listen.kind === "tcp" && listen.host === undefined);
  if (server.accel !== undefined && !isLoopback) {
    warnings.push(
      `server.accel works only over a loopback address or a Unix socket, and server.listen is ${formatListen(listen)}: ` +
        "listen on 127.0.0.1 or unix:PATH, and let the web server connect there",
    );
  }
  warnings.push(...unwiseBucket(config));
  if (server.trusted_proxies.some((network) => network.endsWith("/0"))) {
    warnings.push(
      "server.trusted_proxies trusts everybody: any client can say that it comes from any address",
    );
  }
  for (const [key, address] of Object.entries({ "host.url": host.url, "host.api_url": host.api_url })) {
    const url = address === undefined ? null : URL.parse(address);
    if (!dev.mode && url?.protocol === "http:" && !isLoopbackHost(url.host)) {
      warnings.push(`${key} is http: credentials of users go to the code host in the clear`);
    }
  }
  if (encryption.key !== undefined && new Set(encryption.key.reveal()).size < LEAST_DIGITS) {
    warnings.push("encryption.key does not look random: make one with openssl rand -hex 32");
  }
  if (server.base_url !== undefined && new URL(server.base_url).pathname !== "/") {
    warnings.push("server.base_url has a path, and the service answers at the root of its host name only");
  }
  return warnings;
}

function unwiseBucket({ cache, database: { driver } }: Config): string[] {
  if (cache.object_bucket === undefined) {
    const unset: Readonly<Record<string, unknown>> = configSchema.parse({}).cache;
    const idle = Object.entries(cache).filter(
      ([key, value]) => /^(?:object|local|share)_/.test(key) && value !== unset[key],
    );
    if (idle.length === 0) return [];
    return [
      `without cache.object_bucket these have no effect: ${idle.map(([key]) => `cache.${key}`).join(", ")}`,
    ];
  }
  const warnings: string[] = [];
  if (cache.share_fetches === true && driver === "sqlite") {
    warnings.push(
      "cache.share_fetches with database.driver sqlite: only instances on this machine with the same file share fetches",
    );
  }
  if (!cache.enabled) warnings.push("cache.object_bucket has no effect without cache.enabled");
  if (cache.storage_path?.startsWith("/") === true && cache.local_path === undefined) {
    warnings.push(
      "cache.storage_path is the beginning of names in the bucket, and looks like a folder: set cache.local_path to the folder",
    );
  }
  const endpoint = cache.object_endpoint === undefined ? null : URL.parse(cache.object_endpoint);
  if (endpoint?.protocol === "http:" && !isLoopbackHost(endpoint.host))
    warnings.push("cache.object_endpoint is http: cached repositories cross the network in the clear");
  return warnings;
}

function refused(message: string): SvcError {
  return new SvcError("config_refused", message);
}
