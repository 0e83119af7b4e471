import { CsrfTokens, EventStreams } from "@devplat/web-kit";
import type { Lending } from "./lending.ts";
import type { StoreParts } from "./store.ts";
import { assembleWeb, type WebParts } from "./web.ts";
import { noteOwnWrite } from "./own-writes.ts";
import type { Host } from "../host.ts";
import { signOut } from "../auth/sign-out.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { ensureFolder } from "../agent-files/places.ts";
import { systemDesktop } from "../desktop/desktop.ts";
import type { EnrolmentRunner } from "../enrol/runner.ts";
import type { OpenStreams } from "../surfaces/http-api/open-streams.ts";
import { activatedSockets } from "../surfaces/listening/activation.ts";
import { tokenRoute } from "../surfaces/socket/token-route.ts";
import { apiSocketPath, peerSocketPath } from "../surfaces/socket/places.ts";
import { apiSocketRoutes, peerSocketRoutes } from "../surfaces/socket/routes.ts";
import { SocketServer } from "../surfaces/socket/socket-server.ts";
import type { LentToken } from "../surfaces/forwards/tokens/child-tokens.ts";
import { lentTokensDocument } from "../surfaces/forwards/tokens/lent-tokens-document.ts";
import { PeerSocketLoan } from "../surfaces/forwards/tokens/peer-socket-loan.ts";
import { loanSettings, type TokenLender } from "../surfaces/forwards/tokens/token-lender.ts";
import { StatusView } from "../surfaces/status-view.ts";
import type { MountSurface } from "../surfaces/mount/mount-surface.ts";
import type { SurfaceGroup } from "../surfaces/surface.ts";
import { TokenHandouts } from "../surfaces/socket/token-handouts.ts";
import { PeerFanOut } from "../surfaces/peer-actions/fan-out.ts";
import type { LocalActions } from "../surfaces/peer-actions/local-actions.ts";
import { PeersFirstClipboard } from "../surfaces/peer-actions/peers-first.ts";
import type { RemoteControl } from "../surfaces/forwards/remote-control.ts";
import type { VolumesOnDemand } from "../surfaces/volumes/volumes-on-demand.ts";
import type { SshAgentOnDemand } from "../surfaces/ssh-agent/server/ssh-agent-on-demand.ts";
import { SecretEditor } from "../secrets/secret-editor.ts";
import { WritePolicy } from "../secrets/write-policy.ts";
import type { Daemon } from "../sync/daemon.ts";
import { PausedRules } from "../sync/paused-rules.ts";
import type { StoreWatch } from "../sync/store-watch.ts";
import { RuleSwitch } from "../sync/rule-control.ts";
import { ConfigurationView } from "../config/configuration-view.ts";
import { PortGuard } from "../surfaces/web/access/port-guard.ts";
import { systemSocketOwners } from "../surfaces/web/access/socket-owners.ts";
import { LiveUpdates } from "../surfaces/web/routes/live-updates.ts";
import type { WebServer, WebServerOptions } from "../surfaces/web/server.ts";
import { SetupState } from "../surfaces/web/state/setup-state.ts";
import { WebLogin } from "../surfaces/web/state/web-login.ts";

/** Parts that surfaces and forwards share. They are made when the first one needs them. */
export interface SharedParts extends StoreParts {
  /** The configuration as it applies now. */
  readonly current: () => LoadedConfig;
  readonly actions: () => Promise<LocalActions>;
  readonly lending: () => Promise<Lending>;
}

/** The parts of a daemon that its surfaces use. */
export interface SurfaceFoundation extends SharedParts {
  readonly daemon: Daemon;
  readonly enrolments: EnrolmentRunner;
  /** Changes of the store, which one part follows for all. */
  readonly changes: StoreWatch;
  readonly openStreams: OpenStreams;
  /** Takes the surfaces in the order in which they start. */
  readonly surfaces: SurfaceGroup;
  readonly remotes: RemoteControl;
  readonly sshAgent: SshAgentOnDemand;
  readonly volumes: VolumesOnDemand;
  readonly mount: MountSurface;
  /** Changes that the rules would make, found by a separate engine that does not change the daemon's state. */
  readonly preview: ConstructorParameters<typeof RuleSwitch>[0]["preview"];
}

/**
 * Builds the surfaces that the configuration wants, and adds them to the group. Only a daemon that has one loads this file.
 * @returns the web port, if there is one
 */
export async function assembleSurfaces(host: Host, parts: SurfaceFoundation): Promise<WebServer | undefined> {
  const { environment, places, logger, clock } = host;
  const { daemon, store, signIn, enrolments, surfaces, remotes, sshAgent, volumes, mount, current, changes } =
    parts;
  const { openStreams } = parts;
  const { config } = current();
  const activated = activatedSockets(environment, process.pid);
  const apiPath = config.api.enabled ? apiSocketPath(places, config.api) : undefined;
  const peerPath = peerSocketPath(places, config.api);
  if ((activated.has("api") && apiPath === undefined) || (activated.has("peer") && peerPath === undefined)) {
    logger.warn({}, "a socket was handed over by the supervisor, and the api section does not want it");
  }
  await ensureFolder(places.runtime);
  const desktop = systemDesktop(environment);
  const { lender, surface: lending } = await parts.lending();
  surfaces.add(lending);
  const loans = {
    onChange: (listener: () => void, signal: AbortSignal): void =>
      signal.addEventListener("abort", lender.onChange(listener), { once: true }),
  };
  const { offers, ...keys } = config.api.peer;
  const loan = new PeerSocketLoan({ lender, settings: loanSettings(keys), clock });
  const shared = {
    view: new StatusView(daemon, surfaces, remotes, [sshAgent, volumes, mount, loans]),
    secrets: new SecretEditor({
      store,
      policy: new WritePolicy(config.web.editable_paths, () => Object.keys(current().config.enrolments)),
      logger,
      onChange: noteOwnWrite({ changes, daemon }),
    }),
    signIn,
    openStreams,
    enrolments,
    actions: await parts.actions(),
    remotes,
    peerLoan: peerPath === undefined ? undefined : loan,
    sshAgent: () => sshAgent.agent,
    volumes: () => volumes.volumes,
    mount: () => (current().config.fuse.enabled ? mount : undefined),
    configuration: new ConfigurationView(current),
    logger,
  };
  const fanOut = new PeerFanOut({ patterns: config.store.token_socket, home: places.home, logger });
  const web = config.web.enabled
    ? assembleWeb(
        {
          ...shared,
          ...webParts(host, parts, lender),
          clipboard: new PeersFirstClipboard(fanOut, desktop),
        },
        webOptions(config),
      )
    : undefined;
  if (web !== undefined) surfaces.add(web);

  const streams = new EventStreams();
  openStreams.add(streams);
  const live = new LiveUpdates({ ...shared, token: () => signIn.token(), streams });
  const onSockets = {
    ...shared,
    live,
    streams,
    csrf: new CsrfTokens(clock),
    // The mode of the socket has decided who may connect.
    accessCheck: { isUnlocked: () => true, session: () => undefined },
    origin: () => undefined,
    openLink: web && (() => web.issueLink()),
    surface: "api socket",
  };
  if (apiPath !== undefined)
    surfaces.add(
      new SocketServer({
        path: apiPath,
        descriptor: activated.get("api"),
        app: apiSocketRoutes(onSockets),
        streams: { follow: (signal) => live.follow(signal), closeAll: () => streams.closeAll() },
        statusAt: (socket) => ({ api: { socket, present: true } }),
        logger,
      }),
    );
  if (peerPath !== undefined) {
    const handouts = new TokenHandouts(clock, logger);
    const lend = async (): Promise<LentToken> => {
      const lent = await loan.lend();
      handouts.note();
      return lent;
    };
    const tokens = tokenRoute({ view: shared.view, lend });
    surfaces.add(
      new SocketServer({
        path: peerPath,
        descriptor: activated.get("peer"),
        app: peerSocketRoutes({ ...onSockets, tokens, surface: "peer socket", nonce: undefined }, offers),
        streams: undefined,
        statusAt: (socket) => ({
          peers: { socket, offers, ...handouts.status(), tokens: lentTokensDocument(loan.status()) },
        }),
        logger,
      }),
    );
  }
  return web;
}

function webOptions({ web }: Config): WebServerOptions {
  return {
    listen: web.listen,
    requireUnlock: web.require_unlock,
    texts: { login: web.login_text, secretView: web.secret_view_text },
  };
}

/** Parts that only the web port needs. */
function webParts(
  { places, clock, logger }: Host,
  { daemon, current, preview, tokens, logins, signIn, facts }: SurfaceFoundation,
  lender: TokenLender,
): Pick<WebParts, "login" | "signOut" | "setup" | "ruleControl" | "runtimeFolder" | "guard" | "clock"> {
  const needsCertificate = async (): Promise<boolean> => {
    await tokens?.certificates?.current().catch(() => undefined);
    return tokens?.certificates?.bootstrapState().active ?? false;
  };
  return {
    // Undefined for a store without a login.
    login: logins && new WebLogin({ logins, signIn, username: facts.username, needsCertificate, logger }),
    signOut: tokens && (() => lender.suspendFor(() => signOut({ ...tokens, logger }))),
    setup: new SetupState(places.state),
    ruleControl: new RuleSwitch({
      rules: () => current().config.rules,
      paused: new PausedRules(places.state),
      preview,
      onChange: () => daemon.wake(),
    }),
    runtimeFolder: places.runtime,
    guard: new PortGuard(systemSocketOwners),
    clock,
  };
}
