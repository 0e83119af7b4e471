import { hostname } from "node:os";
import { join } from "node:path";
import { connectionsFolder, remotesPath } from "./forward-places.ts";
import type { Lending } from "./lending.ts";
import type { StoreParts } from "./store.ts";
import { expandHome } from "../config/sections/rule.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Host } from "../host.ts";
import type { DaemonView } from "../status.ts";
import { ForwardConnection, type ConnectionParts } from "../surfaces/forwards/connection.ts";
import type { BuiltForwards } from "../surfaces/forwards/control/forwards-on-demand.ts";
import { ForwardsSurface } from "../surfaces/forwards/control/forwards-surface.ts";
import { PlainConnections } from "../surfaces/forwards/control/plain-connections.ts";
import { Remotes } from "../surfaces/forwards/control/remotes.ts";
import { TrialConnections } from "../surfaces/forwards/control/trial-connections.ts";
import { defaultRemoteSocket } from "../surfaces/forwards/file/remote-entry.ts";
import { RemotesFile } from "../surfaces/forwards/file/remotes-file.ts";
import { Forwards } from "../surfaces/forwards/forwards.ts";
import { learnHostKeys } from "../surfaces/forwards/host-keys.ts";
import { NetworkWatch, systemView } from "../surfaces/forwards/network-watch.ts";
import { ControlFolder } from "../surfaces/forwards/openssh/control-folder.ts";
import { ProcessLimits } from "../surfaces/forwards/openssh/process-limits.ts";
import { SshProgram } from "../surfaces/forwards/openssh/ssh-program.ts";
import { defaultConfiguration, userConfiguration } from "../surfaces/forwards/openssh/user-configuration.ts";
import type { LocalActions } from "../surfaces/peer-actions/local-actions.ts";
import { RemotePeers } from "../surfaces/socket/remote-peers.ts";

/** Keys that forwards use besides those of the user's own SSH agent. */
export interface ForwardIdentities {
  /** Socket of an SSH agent with the daemon's keys for a host; undefined: the user's own SSH agent. */
  socketFor(
    host: string,
    listing: { readonly relay: string | undefined; readonly knownHosts: string },
  ): Promise<string | undefined>;
  /** Calls back when there is a new key. */
  onNewKey(listener: () => void): void;
}

/** The parts of a daemon that its forwards use. */
export interface ForwardsFoundation extends Pick<StoreParts, "signIn"> {
  /** The configuration as it applies now. */
  readonly current: () => LoadedConfig;
  readonly view: DaemonView;
  readonly actions: LocalActions;
  readonly lending: Lending;
  readonly identities: ForwardIdentities;
}

/** Builds the forwards. Only a daemon that has an ssh.yaml, or that is asked to add a remote, loads this file. */
export function assembleForwards(host: Host, parts: ForwardsFoundation): BuiltForwards {
  const { places, environment, clock, logger } = host;
  const { current, signIn, identities, view, actions, lending } = parts;
  const { lender } = lending;
  const settings = () => current().config.ssh;
  const ssh = new SshProgram({
    get command() {
      return expandHome(settings().command, places.home);
    },
    environment,
  });
  const folder = new ControlFolder({ path: connectionsFolder(places), ssh });
  const fromUser = userConfiguration(ssh);
  const connections: ConnectionParts = {
    ssh,
    folder,
    resolve: (query) => (settings().use_ssh_config ? fromUser : defaultConfiguration)(query),
    peers: new RemotePeers({
      view,
      actions,
      // The mode of the socket has decided who may connect.
      accessCheck: { isUnlocked: () => true, session: () => undefined },
      offers: () => current().config.api.peer.offers,
      lender,
      clock,
      logger,
    }),
    limits: new ProcessLimits(clock),
    clock,
    logger,
    trust: () => ({
      authorities: settings().certificate_authorities,
      ignoreHostKeys: settings().insecure_ignore_host_key,
    }),
    identityAgent: async ({ host: name }, { userAgent, knownHosts }) =>
      await identities.socketFor(name, { relay: userAgentSocket(userAgent, host), knownHosts }),
  };
  const checkVersion = versionCheck(ssh, settings);
  const dialler =
    places.platform.system === "win32"
      ? new PlainConnections(connections, checkVersion)
      : new TrialConnections(async (entry, former, signal) => {
          await checkVersion();
          return await ForwardConnection.open(connections, entry, former, signal);
        });
  const forwards = new Forwards({
    open: dialler.open,
    network: new NetworkWatch({ view: systemView, clock }),
    clock,
    logger,
    random: Math.random,
  });
  identities.onNewKey(() => forwards.retry("key"));
  const defaultSocket = defaultRemoteSocket(hostname());
  const learning = {
    ...connections,
    knownHostsFiles: [join(places.home, ".ssh/known_hosts"), "/etc/ssh/ssh_known_hosts"],
  };
  const remotes = new Remotes({
    file: new RemotesFile({ path: remotesPath(places), defaultSocket }),
    defaultSocket,
    forwards,
    lender,
    learn: (entry, options, signal) => learnHostKeys(learning, entry, options, signal),
    dial: (entry, signal) => dialler.dial(entry, signal),
    trust: connections.trust,
    clock,
    logger,
  });
  const surface = new ForwardsSurface({
    remotes,
    forwards,
    folder,
    lender,
    signIn,
    settings: settings(),
    logger,
  });
  return { remotes, surface };
}

/** Socket of the user's own SSH agent, as `IdentityAgent` names it (ssh_config(5)). Undefined without one. */
function userAgentSocket(
  setting: string | undefined,
  { environment, places }: Pick<Host, "environment" | "places">,
): string | undefined {
  if (setting === "none") return undefined;
  const isDefault = setting === undefined || setting === "SSH_AUTH_SOCK";
  const variable = isDefault ? "SSH_AUTH_SOCK" : setting.startsWith("$") ? setting.slice(1) : undefined;
  const path = variable === undefined ? expandHome(setting ?? "", places.home) : environment[variable];
  return path?.startsWith("/") === true ? path : undefined;
}

/** Checks once that the program is new enough. Another `ssh.command` is checked again. */
function versionCheck(ssh: SshProgram, settings: () => { readonly command: string }): () => Promise<void> {
  let checked: string | undefined;
  return async () => {
    const { command } = settings();
    if (checked === command) return;
    await ssh.checkVersion();
    checked = command;
  };
}
