import type { SurfaceFoundation, Surfaces } from "./assemble-surfaces.ts";
import { systemCode, type Clock, type Logger } from "@devplat/base";
import { ConfigError } from "@devplat/config";
import {
  VaultClient,
  openEmbeddedStore,
  openVaultStore,
  proxyFor,
  userRoot,
  type SecretStore,
} from "@devplat/secret-store";
import { access, readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { CertificateFile, OwnCertificate } from "./auth/certificates/certificate-file.ts";
import { SoftwareKeys } from "./auth/certificates/certificate-keys.ts";
import { TokenKeys } from "./auth/certificates/token-keys.ts";
import { Certificates, type CertificatesParts } from "./auth/certificates/certificates.ts";
import { Adoption } from "./auth/adoption.ts";
import { IdentityPin } from "./auth/identity-pin.ts";
import { PeerPool } from "./auth/peer-pool.ts";
import { Logins } from "./auth/logins.ts";
import { TokenSignIn, embeddedSignIn, type SignIn } from "./auth/sign-in.ts";
import { TokenFile, type Sealer } from "./auth/token-file.ts";
import { TokenKeeper } from "./auth/token-keeper.ts";
import { tpmDevice } from "./auth/tpm/device.ts";
import { TpmSealer } from "./auth/tpm/tpm-sealer.ts";
import { Tpm } from "./auth/tpm/tpm.ts";
import { ConfigKeeper } from "./config/keeper.ts";
import type { LoadedConfig } from "./config/load.ts";
import type { Places } from "./config/places.ts";
import type { Config } from "./config/schema.ts";
import { methodParts } from "./config/store-section.ts";
import { dockerStatus } from "./docker/registration.ts";
import { engineFor } from "./enrol/engines.ts";
import { EnrolmentRunner } from "./enrol/runner.ts";
import { Skips } from "./enrol/skips.ts";
import { ownDaemonToken } from "./local-api/own-token.ts";
import { apiSocketPath } from "./local-api/places.ts";
import { Backups } from "./sync/backups.ts";
import { Daemon } from "./sync/daemon.ts";
import { emptyStore } from "./sync/empty-store.ts";
import { SyncEngine } from "./sync/engine.ts";
import { InPlaceJournal } from "./sync/in-place.ts";
import { PausedRules } from "./sync/paused-rules.ts";
import { WriterLock } from "./sync/lock.ts";
import { Renderer } from "./sync/render.ts";
import { expandHome } from "./config/rule.ts";
import { StateFile } from "./sync/state.ts";
import type { StatusFacts } from "./sync/status-report.ts";
import { TargetPolicy } from "./sync/targets.ts";
import { VERSION } from "./version.ts";

/** The surroundings of one process. */
export interface Host {
  readonly places: Places;
  readonly environment: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long the proof of a token may wait for the store, in milliseconds. Default: the client's own time. */
  readonly patienceMs?: number;
}

/** For what a person waits for without having asked the store for anything, in milliseconds. */
export const SHORT_PATIENCE_MS = 5000;

/** The secrets store and who is signed in to it. Close both with `close`. */
export interface StoreParts {
  readonly store: SecretStore;
  readonly signIn: SignIn;
  /** Of a store that asks for a token. */
  readonly tokens?: {
    readonly signIn: TokenSignIn;
    readonly tokenFile: TokenFile;
    readonly pin: IdentityPin;
    readonly client: VaultClient;
    readonly certificates: Certificates | undefined;
  };
  /** The logins that a person can do, where the store asks for one. */
  readonly logins?: Logins;
  readonly facts: StatusFacts;
  close(): Promise<void>;
}

/** Everything that syncs, with the writer lock held. */
export interface SyncParts extends StoreParts {
  readonly engine: SyncEngine;
  readonly state: StateFile;
}

/**
 * Builds the store of the configuration.
 * @param create false for a look that must leave nothing behind: an embedded store that does not exist stays so
 * @param askDaemon whether a token may come from this user's own running daemon; never for that daemon itself
 */
export async function assembleStore(
  host: Host,
  loaded: LoadedConfig,
  create: boolean,
  askDaemon = true,
): Promise<StoreParts> {
  const { config } = loaded;
  const username = config.store.username ?? systemUserName();
  const root = userRoot({ mount: config.store.kv_mount, prefix: config.store.user_prefix, username });
  const docker = await dockerStatus(config, host.places, host.environment);
  const facts = { ...factsOf(host, loaded), username, ...(docker !== undefined && { docker }) };
  if (config.store.driver === "embedded") {
    const store =
      create || (await exists(embeddedFile(host.places)))
        ? await openEmbeddedStore({ folder: host.places.data, root, clock: host.clock })
        : emptyStore;
    return { store, signIn: embeddedSignIn, facts, close: () => store.close() };
  }
  const tokenFile = new TokenFile(host.places.tokenFile, sealerOf(host, config));
  const pin = new IdentityPin(host.places.state, create);
  const { clock, logger } = host;
  const patience = host.patienceMs === undefined ? {} : { timeoutMs: host.patienceMs };
  const peers = new PeerPool({ patterns: config.store.token_socket, home: host.places.home, clock, logger });
  const tokens = new TokenSignIn({
    environment: host.environment,
    tokenFile,
    pin,
    api: {
      lookup: (token, signal) => client.lookupSelf({ token, signal, ...patience }),
      renew: async (token, signal) => void (await client.renewSelf({ token, signal })),
    },
    borrow: async function* (signal) {
      if (askDaemon && config.api.enabled)
        yield* ownDaemonToken(apiSocketPath(host.places, config.api), signal);
      yield* peers.borrow(signal);
    },
    // A look that must leave nothing behind signs nobody in.
    ...(create &&
      methodParts(config.store.auth_method).kind === "mtls" && {
        automatic: async (signal) => (await certificates?.login({ signal }))?.token,
      }),
    renewal: !config.store.disable_token_renewal,
    clock: host.clock,
    logger: host.logger,
  });
  const options = { ...(await vaultOptions(host, config)), clock: host.clock, token: () => tokens.token() };
  const client = new VaultClient(options);
  const store = openVaultStore({ ...options, root });
  const close = async (): Promise<void> => {
    await adoption.endUnkept();
    await store.close();
    await client.close();
  };
  const isOs = methodParts(config.store.auth_method).suffix === "os";
  const adoption = new Adoption({
    client,
    pin,
    // The key that never leaves its token would be worth little beside a token in a file.
    tokenFile: isOs ? undefined : tokenFile,
    scope: { policies: config.store.policies, noDefaultPolicy: config.store.no_default_policy },
    logger: host.logger,
  });
  const certificates = certificatesOf(host, config, {
    client,
    connect: (clientCertificate) => new VaultClient({ ...options, clientCertificate }),
    adoption,
    username,
  });
  const logins = new Logins({ client, store: config.store, adoption, certificates });
  return {
    store,
    signIn: tokens,
    tokens: { signIn: tokens, tokenFile, pin, client, certificates },
    logins,
    facts,
    close,
  };
}

/** What seals at rest under a method with `+tpm`. */
function sealerOf({ environment }: Host, { store }: Config): Sealer | undefined {
  if (methodParts(store.auth_method).suffix !== "tpm") return undefined;
  return new TpmSealer(new Tpm(tpmDevice(environment)), store.mtls.seal_to_pcrs);
}

/** What holds keys under `mtls+os`. */
function tokenKeysOf({ places, environment, logger }: Host, { store }: Config): TokenKeys | undefined {
  const { pkcs11 } = store.mtls;
  if (methodParts(store.auth_method).suffix !== "os" || pkcs11 === undefined) return undefined;
  const at = (path: string): string => expandHome(path, places.home);
  const settings = { ...pkcs11, module: at(pkcs11.module), pin_file: at(pkcs11.pin_file) };
  return new TokenKeys(settings, store.mtls, environment, logger);
}

/** Undefined unless the configured method signs in by a client certificate. */
function certificatesOf(
  host: Host,
  config: Config,
  parts: Pick<CertificatesParts, "client" | "connect" | "adoption" | "username">,
): Certificates | undefined {
  const { places, clock, logger } = host;
  const { store } = config;
  if (methodParts(store.auth_method).kind !== "mtls") return undefined;
  const { byo, storage_dir } = store.mtls;
  const tokenKeys = tokenKeysOf(host, config);
  const sealer = sealerOf(host, config);
  const folder = expandHome(storage_dir ?? join(places.data, "mtls"), places.home);
  const file = byo === undefined ? new CertificateFile(folder, { sealer, tokenKeys }) : undefined;
  const keys =
    tokenKeys ?? new SoftwareKeys(store.mtls, sealer === undefined ? "file" : "file, sealed to the TPM");
  const own = byo && new OwnCertificate(expandHome(byo.cert, places.home), expandHome(byo.key, places.home));
  const stored = file ?? own;
  return stored && new Certificates({ ...parts, stored, file, keys, settings: store.mtls, clock, logger });
}

/**
 * Builds everything for writing.
 * @param waitMs how long to wait for another writer, in milliseconds; see WriterLock for the default
 * @throws AgentError `locked`
 */
export async function assembleSync(host: Host, loaded: LoadedConfig, waitMs?: number): Promise<SyncParts> {
  const lock = await WriterLock.acquire(host.places.state, waitMs);
  try {
    const state = await StateFile.open(host.places.state);
    if (state.rebuilt) host.logger.warn({}, "state file was lost or damaged and is rebuilt");
    const parts = await assembleStore(host, loaded, true, false);
    const close = async (): Promise<void> => {
      await parts.close();
      lock[Symbol.dispose]();
    };
    return { ...parts, state, engine: engineOf(host, loaded, parts.store, state), close };
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

/**
 * Builds everything for looking: takes no lock, and writes nothing. Do not call `engine.cycle`.
 * @param create see assembleStore. Default false
 */
export async function assemblePreview(host: Host, loaded: LoadedConfig, create = false): Promise<SyncParts> {
  const state = await StateFile.peek(host.places.state);
  const parts = await assembleStore(host, loaded, create);
  return { ...parts, state, engine: engineOf(host, loaded, parts.store, state) };
}

/**
 * Builds the daemon and the surfaces that the configuration wants. Listening is a step of its own.
 * @param load reads the configuration again
 */
export async function assembleDaemon(
  host: Host,
  loaded: LoadedConfig,
  load: (signal: AbortSignal) => Promise<LoadedConfig>,
): Promise<
  Surfaces & {
    daemon: Daemon;
    keeper: TokenKeeper | undefined;
    config: ConfigKeeper;
    enrolments: EnrolmentRunner;
    /** For a login at the terminal. */
    session: StoreParts;
    close(): Promise<void>;
  }
> {
  const parts = await assembleSync(host, loaded);
  const enrolments = enrolmentRunner(host, loaded, parts, () => daemon.wake());
  const certificates = parts.tokens?.certificates;
  const daemon: Daemon = new Daemon({
    ...parts,
    clock: host.clock,
    logger: host.logger,
    intervalMs: loaded.config.sync.interval,
    bootstrap: certificates && (() => certificates.bootstrapState()),
    enrolments,
  });
  // What mirrors a secret follows it.
  daemon.onStoreEvent(() => enrolments.poke());
  const keeper =
    parts.tokens &&
    new TokenKeeper({
      ...parts.tokens,
      maintain: async (token, signal) => await parts.tokens?.certificates?.reissueIfDue(token, signal),
      onWake: () => daemon.wake(),
      clock: host.clock,
      logger: host.logger,
    });
  const config = new ConfigKeeper({
    loaded,
    load,
    apply: ({ rules, sync, enrolments: configured }, facts) => {
      enrolments.configure(configured, sync.interval);
      return daemon.configure({
        rules,
        intervalMs: sync.interval,
        allowedTargets: sync.allowed_targets,
        facts,
      });
    },
    clock: host.clock,
    logger: host.logger,
  });
  return {
    daemon,
    keeper,
    config,
    enrolments,
    session: parts,
    ...(await surfaces(host, { ...parts, daemon, enrolments, current: () => config.current })),
    close: () => parts.close(),
  };
}

/** Loads what the surfaces need only where the configuration has one. */
async function surfaces(host: Host, parts: Omit<SurfaceFoundation, "preview">): Promise<Surfaces> {
  const { web, api } = parts.current().config;
  if (!web.enabled && !(api.peer.enabled ?? api.enabled) && !api.enabled) {
    return { web: undefined, localApi: undefined };
  }
  const { assembleSurfaces } = await import("./assemble-surfaces.ts");
  return await assembleSurfaces(host, {
    ...parts,
    preview: async (signal) => {
      const state = await StateFile.peek(host.places.state);
      return await engineOf(host, parts.current(), parts.store, state).preview(signal);
    },
  });
}

/** The runner of this user's enrolments. */
export function enrolmentRunner(
  host: Host,
  { config }: LoadedConfig,
  { store, signIn, facts }: StoreParts,
  onStored: () => void,
): EnrolmentRunner {
  const { clock, logger, places } = host;
  return new EnrolmentRunner({
    enrolments: config.enrolments,
    makeEngine: (enrolment) => engineFor(enrolment, { store, username: facts.username, clock }),
    store,
    signIn,
    skips: new Skips(places.state),
    intervalMs: config.sync.interval,
    onStored,
    clock,
    logger,
  });
}

/** The configured token's place and the store's settings, without touching either. */
export function factsOf(host: Host, { config, sources, warnings }: LoadedConfig): StatusFacts {
  const embedded = config.store.driver === "embedded";
  return {
    version: VERSION,
    authMethod: embedded ? "embedded" : config.store.auth_method,
    driver: config.store.driver,
    address: embedded ? embeddedFile(host.places) : (config.store.address ?? ""),
    kvMount: config.store.kv_mount,
    userPrefix: config.store.user_prefix,
    username: config.store.username ?? systemUserName(),
    sources,
    problems: warnings,
  };
}

function engineOf(host: Host, loaded: LoadedConfig, store: SecretStore, state: StateFile): SyncEngine {
  const { places, environment, clock, logger } = host;
  const { config, sources } = loaded;
  return new SyncEngine(
    {
      store,
      state,
      renderer: new Renderer({
        environment,
        username: config.store.username ?? systemUserName(),
        hash: (text) => state.hmac(text),
      }),
      targets: new TargetPolicy(places, config.sync.allowed_targets, sources),
      journal: new InPlaceJournal(places.state),
      backups: new Backups(places.state),
      paused: new PausedRules(places.state),
      clock,
      logger,
      home: places.home,
    },
    config.rules,
  );
}

async function vaultOptions({ places, environment }: Host, { store }: Config) {
  const address = store.address ?? "";
  const proxy = proxyFor(address, environment, store.proxy);
  const caCert =
    store.ca_cert === undefined ? undefined : await readCertificate(expandHome(store.ca_cert, places.home));
  return {
    address,
    tlsSkipVerify: store.tls_skip_verify,
    ...(store.namespace !== undefined && { namespace: store.namespace }),
    ...(caCert !== undefined && { caCert }),
    ...(proxy !== undefined && { proxy }),
  };
}

async function readCertificate(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const message = `cannot be read (${systemCode(error) ?? "unknown error"})`;
    throw new ConfigError(
      "config_unreadable",
      [{ source: path, line: 0, column: 0, key: "store.ca_cert", message }],
      error,
    );
  }
}

/** The operating system's user, without the domain that directory services put before or behind it. */
function systemUserName(): string {
  const name = userInfo().username;
  return (name.split("\\").at(-1) ?? name).split("@")[0] ?? name;
}

function embeddedFile(places: Places): string {
  return join(places.data, "embedded.db");
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
