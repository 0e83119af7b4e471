import { exists, systemCode } from "@devplat/base";
import { noteLine } from "@devplat/base/terminal";
import { ConfigError, type ConfigPlace } from "@devplat/config";
import { VaultClient, openEmbeddedStore, openVaultStore, userRoot } from "@devplat/secret-store";
import { readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { Adoption } from "../auth/token/adoption.ts";
import { CertificateFile, OwnCertificate } from "../auth/certificates/certificate-file.ts";
import { SoftwareKeys } from "../auth/certificates/certificate-keys.ts";
import { Certificates, type CertificatesParts } from "../auth/certificates/certificates.ts";
import { TokenKeys } from "../auth/certificates/token-keys.ts";
import { IdentityPin } from "../auth/token/identity-pin.ts";
import { Logins } from "../auth/login/logins.ts";
import { PeerPool } from "../auth/peer-pool.ts";
import { TokenSignIn, embeddedSignIn, type SignIn } from "../auth/sign-in.ts";
import { TokenFile, type Sealer } from "../auth/token/token-file.ts";
import { tpmDevice } from "../auth/tpm/device.ts";
import { TpmSealer } from "../auth/tpm/tpm-sealer.ts";
import { Tpm } from "../auth/tpm/tpm.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Places } from "../agent-files/places.ts";
import { expandHome } from "../config/sections/rule.ts";
import type { Config } from "../config/schema.ts";
import { methodParts } from "../config/sections/store-section.ts";
import type { Host } from "../host.ts";
import { ownDaemonToken } from "../surfaces/socket/own-token.ts";
import { apiSocketPath } from "../surfaces/socket/places.ts";
import { ObservedStore } from "../secrets/observed-store.ts";
import { StoreHealth } from "../secrets/store-health.ts";
import { emptyStore } from "../secrets/empty-store.ts";
import type { StatusFacts } from "../sync/status-report.ts";
import { VERSION } from "../version.ts";

/** The secrets store and who is signed in to it. Close both with `close`. */
export interface StoreParts {
  readonly store: ObservedStore;
  /** Health of the store, from the requests of {@link StoreParts.store}. */
  readonly health: StoreHealth;
  readonly signIn: SignIn;
  /** Parts of a store that needs a token. */
  readonly tokens?: {
    readonly signIn: TokenSignIn;
    readonly tokenFile: TokenFile;
    readonly pin: IdentityPin;
    readonly peers: PeerPool;
    readonly client: VaultClient;
    readonly certificates: Certificates | undefined;
  };
  /** The interactive logins, if the store needs a login. */
  readonly logins?: Logins;
  readonly facts: StatusFacts;
  close(): Promise<void>;
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
  const username = userNameOf(config);
  const root = userRoot({ mount: config.store.kv_mount, prefix: config.store.user_prefix, username });
  const facts = { ...factsOf(host, loaded), username };
  const health = new StoreHealth();
  if (config.store.driver === "embedded") {
    const embedded =
      create || (await exists(embeddedFile(host.places)))
        ? await openEmbeddedStore({ folder: host.places.data, root, clock: host.clock })
        : emptyStore;
    const store = new ObservedStore({ store: embedded, health });
    return { store, health, signIn: embeddedSignIn, facts, close: () => store.close() };
  }
  const tokenFile = new TokenFile(host.places.tokenFile, sealerOf(host, config));
  const pin = new IdentityPin(host.places.state, create);
  const { clock, logger } = host;
  const patience = host.storeTimeoutMs === undefined ? {} : { timeoutMs: host.storeTimeoutMs };
  const peers = new PeerPool({
    patterns: config.store.token_socket,
    home: host.places.home,
    // A command waits, unless its user must not wait. The daemon asks again by its own timer.
    onWaiting:
      askDaemon && host.storeTimeoutMs === undefined
        ? (workstation) => noteLine(`waiting for consent on ${workstation}`)
        : undefined,
    clock,
    logger,
  });
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
    // Without `create` nothing may be left behind, so there is no login.
    automatic:
      create && methodParts(config.store.auth_method).kind === "mtls"
        ? async (signal) => await certificates?.login({ signal })
        : undefined,
    renewal: !config.store.disable_token_renewal,
    clock: host.clock,
    logger: host.logger,
  });
  const options = { ...(await vaultOptions(host, loaded)), clock: host.clock, token: () => tokens.token() };
  const client = new VaultClient(options);
  const store = new ObservedStore({ store: openVaultStore({ ...options, root }), health, signIn: tokens });
  const close = async (): Promise<void> => {
    await adoption.endUnkept();
    await store.close();
    await client.close();
  };
  const isOs = methodParts(config.store.auth_method).suffix === "os";
  const adoption = new Adoption({
    client,
    pin,
    // A store token in a file would undo the protection of a key that never leaves its hardware token.
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
    health,
    signIn: tokens,
    tokens: { signIn: tokens, tokenFile, pin, peers, client, certificates },
    logins,
    facts,
    close,
  };
}

/** Seals files under a method with `+tpm`; undefined for other methods. */
function sealerOf({ environment }: Host, { store }: Config): Sealer | undefined {
  if (methodParts(store.auth_method).suffix !== "tpm") return undefined;
  return new TpmSealer(new Tpm(tpmDevice(environment)), store.mtls.seal_to_pcrs);
}

/** Holds the keys under `mtls+os`; undefined for other methods. */
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
    mountpoint: config.fuse.mountpoint,
    username: userNameOf(config),
    sources,
    problems: warnings,
  };
}

async function vaultOptions({ places, environment }: Host, { config: { store }, locate }: LoadedConfig) {
  const address = store.address ?? "";
  const caCert =
    store.ca_cert === undefined
      ? undefined
      : await readCertificate(expandHome(store.ca_cert, places.home), locate(["store", "ca_cert"]));
  return {
    address,
    environment,
    tlsSkipVerify: store.tls_skip_verify,
    ...(store.namespace !== undefined && { namespace: store.namespace }),
    ...(caCert !== undefined && { caCert }),
    ...(store.proxy !== undefined && { proxy: store.proxy }),
  };
}

async function readCertificate(path: string, place: ConfigPlace): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const message = `${path} cannot be read (${systemCode(error) ?? "unknown error"})`;
    throw new ConfigError("config_unreadable", [{ ...place, key: "store.ca_cert", message }], {
      cause: error,
    });
  }
}

/** `store.username`; else the operating system's user, without the domain that directory services put before or behind it. */
export function userNameOf({ store }: Config): string {
  if (store.username !== undefined) return store.username;
  const name = userInfo().username;
  return (name.split("\\").at(-1) ?? name).split("@")[0] ?? name;
}

function embeddedFile(places: Places): string {
  return join(places.data, "embedded.db");
}
