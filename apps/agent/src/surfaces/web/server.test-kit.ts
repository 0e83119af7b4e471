import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { request, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { Secret, systemClock, type Clock, type LogFields, type Logger } from "@devplat/base";
import { openEmbeddedStore, userRoot, type SecretStore } from "@devplat/secret-store";
import { embeddedSignIn } from "../../auth/sign-in.ts";
import { parseConfig } from "../../config/load.ts";
import type { Clipboard } from "../../desktop/clipboard.ts";
import { engineFor } from "../../enrol/engines.ts";
import { EnrolmentRunner } from "../../enrol/runner.ts";
import { EnrolmentState } from "../../enrol/enrolment-state.ts";
import { ObservedStore } from "../../secrets/observed-store.ts";
import { SecretEditor } from "../../secrets/secret-editor.ts";
import { StoreHealth } from "../../secrets/store-health.ts";
import { WritePolicy } from "../../secrets/write-policy.ts";
import type { Desktop } from "../../desktop/desktop.ts";
import type { RemoteControl } from "../forwards/remote-control.ts";
import type { MountControl } from "../mount/mount-control.ts";
import type { VolumeControl } from "../volumes/volume-control.ts";
import type { SshAgentControl } from "../ssh-agent/ssh-agent-control.ts";
import { LocalActions } from "../peer-actions/local-actions.ts";
import type { RuleControl } from "../../sync/rule-control.ts";
import { ConfigurationView } from "../../config/configuration-view.ts";
import { OpenStreams } from "../http-api/open-streams.ts";
import { MemoryView } from "./memory-view.test-kit.ts";
import { PortGuard } from "./access/port-guard.ts";
import { systemSocketOwners } from "./access/socket-owners.ts";
import { testLogin, type TestLoginOptions } from "./login.test-kit.ts";
import { SetupState } from "./state/setup-state.ts";
import type { WebServerOptions } from "./server.ts";
import { assembleWeb, type WebParts } from "../../assemble/web.ts";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

/** A web server over a {@link MemoryView} on a free port, for tests. */
export interface TestServer {
  readonly url: string;
  readonly host: string;
  readonly runtimeFolder: string;
  readonly view: MemoryView;
  readonly store: SecretStore;
  /** The configured enrolments, over the store. */
  readonly enrolments: EnrolmentRunner;
  /** The daemon holds another token from now on. */
  replaceToken(next: string): void;
  /** How often somebody has signed out. */
  readonly signedOut: number;
  /** Texts that were put on the clipboard. */
  readonly copied: string[];
  /** Every line of the log, as JSON. */
  readonly log: string[];
  /** Log messages of level warn and error. */
  readonly warnings: string[];
  send(path: string, options?: RequestOptions): Promise<Answer>;
  /** Opens a request and leaves its body to the caller. */
  open(path: string, headers?: Record<string, string>): Promise<IncomingMessage>;
  /** Bytes as they are, and all that comes back until the server closes. */
  raw(bytes: string): Promise<string>;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startTestServer(
  options: Partial<Pick<WebServerOptions, "requireUnlock" | "texts">> & {
    clock?: Clock;
    guard?: PortGuard;
    listen?: string;
    /** Default: a new folder, removed at the end. */
    runtimeFolder?: string;
    /** Default: an embedded store of its own, empty. */
    store?: SecretStore;
    editablePaths?: readonly string[];
    enrolmentKeys?: readonly string[];
    /** How one signs in. Default: by token. */
    login?: TestLoginOptions;
    clipboard?: Clipboard;
    /** Default: one on which everything works. */
    desktop?: Desktop;
    /** Managed SSH forwards. Default: none. */
    remotes?: RemoteControl;
    /** Default: it is off. */
    sshAgent?: SshAgentControl;
    /** The filesystem mount. Default: it is off. */
    mount?: MountControl;
    /** Container volumes. Default: they are off. */
    volumes?: VolumeControl;
    /** Default: there is no peer socket. */
    peerLoan?: WebParts["peerLoan"];
    /** Default: every rule can be paused, and nothing would change. */
    ruleControl?: RuleControl;
    /** The store token; default: none, as with the embedded store. */
    token?: string;
    /** Text of the configuration that the page and the API show. */
    configuration?: string;
  } = {},
): Promise<TestServer> {
  const runtimeFolder = options.runtimeFolder ?? (await mkdtemp(join(tmpdir(), "agent-web-")));
  const view = new MemoryView();
  const warnings: string[] = [];
  const log: string[] = [];
  const copied: string[] = [];
  const { listen = "127.0.0.1:0", requireUnlock = "auto" } = options;
  let { token } = options;
  const logger = collect(warnings, log);
  const storeFolder = await mkdtemp(join(tmpdir(), "agent-web-store-"));
  const store = options.store ?? (await testStore(storeFolder));
  const configuration = parseConfig({
    path: "config.yaml",
    text: options.configuration ?? "store: { driver: embedded }",
  });
  const enrolments = new EnrolmentRunner({
    enrolments: configuration.enrolments,
    makeEngine: (enrolment) => engineFor(enrolment, { store, username: "ada", clock: systemClock }),
    store,
    signIn: embeddedSignIn,
    state: new EnrolmentState(storeFolder),
    intervalMs: configuration.sync.interval,
    onStored: () => undefined,
    clock: systemClock,
    logger,
  });
  const showEnrolments = (): void => view.set({ status: { enrolments: enrolments.list() } });
  enrolments.onChange(showEnrolments);
  showEnrolments();
  const followed = new AbortController();
  for (const each of [options.remotes, options.sshAgent]) each?.onChange(() => view.set({}), followed.signal);
  let signedOut = 0;
  const health = new StoreHealth();
  health.onChange(() => {
    const { store: shown } = view.status();
    const last_error = health.fault() ?? null;
    view.set({ status: { store: { ...shown, reachable: last_error === null, last_error } } });
  });
  const signIn = {
    token: () => (token === undefined ? undefined : new Secret(token)),
    invalidate: () => view.set({ status: { authenticated: false } }),
  };
  const parts: WebParts = {
    view,
    enrolments,
    setup: new SetupState(storeFolder),
    login: testLogin(view, options.login),
    signOut: async () => {
      signedOut += 1;
      view.set({ status: { authenticated: false } });
    },
    runtimeFolder,
    openStreams: new OpenStreams(),
    logger,
    secrets: new SecretEditor({
      store: new ObservedStore({ store, health, signIn }),
      policy: new WritePolicy(options.editablePaths ?? [], () => options.enrolmentKeys ?? []),
      logger,
      onChange: () => undefined,
    }),
    signIn,
    ruleControl: options.ruleControl ?? {
      setPaused: async () => "done",
      nextChange: async () => ({ diff: "" }),
    },
    actions: new LocalActions(options.desktop ?? idleDesktop, logger),
    remotes: options.remotes,
    sshAgent: () => options.sshAgent,
    volumes: () => options.volumes,
    mount: () => options.mount,
    peerLoan: options.peerLoan,
    clipboard: options.clipboard ?? {
      copy: async (secret) => {
        copied.push(secret.reveal());
        return "copied";
      },
    },
    configuration: new ConfigurationView(() => ({
      config: configuration,
      sources: ["/home/ada/.config/daemon/config.yaml"],
    })),
    clock: options.clock ?? systemClock,
    guard: options.guard ?? new PortGuard(systemSocketOwners),
  };
  const texts = options.texts ?? { login: "", secretView: "" };
  const server = assembleWeb(parts, { listen, requireUnlock, texts });
  await server.start();
  const { url } = server;
  const { host, hostname, port } = new URL(url);
  const address = hostname.replaceAll(/[[\]]/g, "");

  const open = async (
    path: string,
    { method = "GET", headers = {}, body }: RequestOptions = {},
  ): Promise<IncomingMessage> => {
    const outgoing = request({ host: address, port, path, method, headers: { Host: host, ...headers } });
    outgoing.on("error", () => undefined);
    outgoing.end(body);
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    return incoming;
  };
  const stop = async (): Promise<void> => {
    await server.stop();
    followed.abort();
    await Promise.all(Object.keys(configuration.enrolments).map((key) => enrolments.cancel(key)));
    if (options.store === undefined) await store.close();
    await rm(storeFolder, { recursive: true, force: true });
    if (options.runtimeFolder === undefined) await rm(runtimeFolder, { recursive: true, force: true });
  };
  return {
    url,
    host,
    runtimeFolder,
    view,
    store,
    enrolments,
    replaceToken: (next) => {
      token = next;
      view.set({});
    },
    get signedOut() {
      return signedOut;
    },
    copied,
    log,
    warnings,
    open: (path, headers = {}) => open(path, { headers }),
    send: async (path, sending = {}) => {
      const incoming = await open(path, sending);
      return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: await text(incoming) };
    },
    raw: async (bytes) => {
      const socket = connect(Number(port), address);
      socket.write(bytes);
      return (await buffer(socket)).toString("latin1");
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

const idleDesktop: Desktop = {
  open: async () => "done",
  raise: async () => "done",
  copy: async () => "copied",
};

/** An embedded store in a folder. */
export function testStore(folder: string): Promise<SecretStore> {
  const root = userRoot({ mount: "kv", prefix: "users/", username: "ada" });
  return openEmbeddedStore({ folder, root, clock: systemClock });
}

function collect(warnings: string[], log: string[]): Logger {
  const note = (fields: LogFields, message: string): void =>
    void log.push(JSON.stringify({ ...fields, message }));
  const warn = (fields: LogFields, message: string): void => {
    note(fields, message);
    warnings.push(message);
  };
  const logger: Logger = { debug: note, info: note, warn, error: warn, child: () => logger };
  return logger;
}
