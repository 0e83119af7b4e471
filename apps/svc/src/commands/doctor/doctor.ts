import { X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rmdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { AppError, messageOf, systemCode } from "@devplat/base";
import { flagOf, textOf, type Options } from "@devplat/cli";
import { Findings, type Outcome } from "@devplat/cli/findings";
import { HttpClientError } from "@devplat/http-client";
import { refuseUnusable, ineffective } from "../../config/refusals.ts";
import { cacheFolder } from "../../config/cache-folder.ts";
import { formatListen } from "../../config/listen.ts";
import type { Config } from "../../config/schema.ts";
import { HostClient } from "../../code-host/host-client.ts";
import type { CodeHost } from "../../code-host/code-host.ts";
import { codeHostFor } from "../../code-host/code-host-for.ts";
import { UpstreamConnections } from "../../upstream/upstream-connections.ts";
import { CERTIFICATE_SOON_MS, LITTLE_SPACE } from "../../health.ts";
import { TlsIdentities } from "../../http/server/tls-identities.ts";
import { readConfig, type RunCommand } from "../command.ts";
import { lookAtFolder, unusableFolder } from "../folder-state.ts";
import { databaseFindings } from "./database-findings.ts";
import { serviceState } from "./service-state.ts";

/** Beginning of the name of a folder that is made and removed as a trial. */
const TRIAL_FOLDER = ".svc-doctor-";

/**
 * Looks at everything that the service depends on, and says what is wrong. Exit code 1 if there is a fault. Changes nothing:
 * what it makes as a trial is removed again.
 */
export const doctor: RunCommand = async ({ flags, options }) => {
  const findings = new Findings(faultOf);
  let config: Config | undefined;
  await findings.attempt("configuration", async () => {
    const loaded = await readConfig(flags);
    config = loaded.config;
    refuseUnusable(config);
    if (config.cache.object_bucket !== undefined) {
      const { checkBucketSettings } = await import("../../assemble/bucket.ts");
      await checkBucketSettings(config);
    }
    const warnings = [...loaded.warnings, ...ineffective(config)];
    return warnings.length > 0
      ? { warning: warnings.join("; ") }
      : (loaded.file ?? "no file; defaults and environment");
  });
  if (config !== undefined && flagOf(options, "bucket")) {
    const { examineBucket } = await import("./bucket-findings.ts");
    await examineBucket(config, findings);
  } else if (config !== undefined) await examine(config, findings, options);
  return findings.print(options);
};

async function examine(config: Config, findings: Findings, options: Options): Promise<void> {
  const dataDir = resolve(config.data_dir);
  await findings.attempt("data folder", async () => folderFinding(dataDir));
  await findings.attempt("encryption key", async () => {
    if (config.database.driver === "vault") return "not needed: the secrets store encrypts";
    if (config.encryption.key !== undefined) return "";
    return config.dev.mode
      ? { warning: "made in the data folder in development mode" }
      : { fault: "encryption.key (SVC_ENCRYPTION_KEY) is not set: generate one with openssl rand -hex 32" };
  });
  await databaseFindings(config, findings);
  await findings.attempt(config.cache.enabled ? "cache folder" : "cache", async () => {
    if (!config.cache.enabled) return { warning: "cache.enabled is false: everything passes through" };
    return folderFinding(cacheFolder(config));
  });
  if (config.server.accel !== undefined) {
    const { accelFinding } = await import("./accel-findings.ts");
    await findings.attempt("web server in front", async () =>
      accelFinding(config, textOf(options, "accel-url")),
    );
  }
  await findings.attempt("certificates", async () => certificateFinding(config));
  await findings.attempt("code host", async () =>
    askCodeHost(config, async (client, host) => {
      const { status } = await client.ask("GET", host.url);
      return status < 500 ? `${host.url} answers` : { fault: `${host.url} answers ${status}` };
    }),
  );
  await findings.attempt("code host API", async () =>
    askCodeHost(config, async (client, host) => {
      const path = host.kind === "gitea" ? "version" : "meta";
      const { status } = await client.ask("GET", `${host.apiUrl}/${path}`);
      return status < 400
        ? `${host.apiUrl} answers`
        : { warning: `${host.apiUrl} answers ${status}: is host.api_url right?` };
    }),
  );
  await findings.attempt("login", async () =>
    config.dev.mode
      ? { warning: "development mode: anybody who reaches it logs in as anybody" }
      : config.host.client_id === undefined
        ? { warning: "host.client_id is not set: nobody can log in" }
        : "OAuth client configured",
  );
  await findings.attempt("service", async () => serviceFinding(config));
}

/** With the trust and the proxies that the service itself would ask with. */
async function askCodeHost(
  { host }: Config,
  ask: (client: HostClient, host: CodeHost) => Promise<Outcome>,
): Promise<Outcome> {
  const connections = new UpstreamConnections({ caFile: host.ca_file, environment: process.env });
  try {
    return await ask(new HostClient(connections.http), codeHostFor(host));
  } finally {
    await connections.close();
  }
}

async function folderFinding(folder: string): Promise<Outcome> {
  const state = await lookAtFolder(folder);
  if (state.kind === "unusable") return { fault: state.reason };
  const { existing, freeBytes } = state;
  try {
    // For the superuser the permissions say nothing, and a file system may refuse new folders for other reasons.
    await rmdir(await mkdtemp(join(existing, TRIAL_FOLDER)));
  } catch (error) {
    return { fault: `${unusableFolder(folder, existing)} (${systemCode(error) ?? "unknown"})` };
  }
  const shown = `${folder}, ${Math.floor(freeBytes / 1024 ** 3)} GiB free`;
  if (freeBytes < LITTLE_SPACE) return { warning: shown };
  return existing === folder ? shown : `${shown}, not made yet`;
}

async function certificateFinding({ tls }: Config): Promise<Outcome> {
  const files = tls.certificates.map(({ cert_file, key_file }) => ({
    certFile: cert_file,
    keyFile: key_file,
  }));
  if (files.length === 0) return "none: plain HTTP";
  const end = new TlsIdentities(files).notAfter;
  const [first] = files;
  const subject = new X509Certificate(await readFile(first?.certFile ?? "")).subject.replaceAll("\n", ", ");
  if (end.getTime() <= Date.now()) return { fault: `one is over since ${end.toISOString()}` };
  if (end.getTime() - Date.now() < CERTIFICATE_SOON_MS)
    return { warning: `one ends at ${end.toISOString()}` };
  return `${subject}, good until ${end.toISOString()}`;
}

/** Whether the service runs on this machine, by its own listen address. */
async function serviceFinding(config: Config): Promise<Outcome> {
  const state = await serviceState(config);
  switch (state.kind) {
    case "ready": {
      const ready = `running and ready at ${formatListen(config.server.listen)}`;
      return state.notes.length === 0 ? ready : { warning: [ready, ...state.notes].join("; ") };
    }
    case "unknown":
      return "listens on a socket file; not asked";
    case "stopped":
      return { warning: "not running; 'svc serve' starts it" };
    default:
      return { warning: `${state.url} answers ${state.status}` };
  }
}

/** The fault of a proxy is for the administrator of the service. Callers get its code only. */
function faultOf(error: unknown): string {
  const proxy = error instanceof Error ? proxyFault(error.cause) : undefined;
  const hint = proxy?.hint ?? (error instanceof AppError ? error.hint : undefined);
  return [messageOf(error), proxy?.message, hint].filter(Boolean).join(". ");
}

function proxyFault(cause: unknown): HttpClientError | undefined {
  if (!(cause instanceof HttpClientError)) return undefined;
  return cause.code === "proxy_unavailable" || cause.code === "proxy_misconfigured" ? cause : undefined;
}
