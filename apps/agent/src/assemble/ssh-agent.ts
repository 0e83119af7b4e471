import { userInfo } from "node:os";
import { join } from "node:path";
import type { StoreParts } from "./store.ts";
import { expandHome } from "../config/sections/rule.ts";
import { SSH_AUTH_SOCK } from "../config/sections/ssh-agent-section.ts";
import type { LoadedConfig } from "../config/load.ts";
import { systemDesktop } from "../desktop/desktop.ts";
import type { Host } from "../host.ts";
import { pageantPipeName, protectMemory } from "../platform/pageant.ts";
import type { StoreChanges } from "../secrets/folder/store-changes.ts";
import { activatedSockets } from "../surfaces/listening/activation.ts";
import { sshAgentSocketPath } from "../surfaces/socket/places.ts";
import { askpassProgram } from "../surfaces/ssh-agent/questions/askpass.ts";
import { questionNotification } from "../surfaces/ssh-agent/questions/prompt-text.ts";
import { WaitingQuestions } from "../surfaces/ssh-agent/questions/waiting-questions.ts";
import type { SshAgentSettings } from "../surfaces/ssh-agent/server/settings.ts";
import type { BuiltSshAgent } from "../surfaces/ssh-agent/server/ssh-agent-on-demand.ts";
import { SshAgentSurface } from "../surfaces/ssh-agent/server/ssh-agent-surface.ts";
import { SshAgent } from "../surfaces/ssh-agent/server/ssh-agent.ts";
import { limitUnlocking } from "../surfaces/ssh-agent/server/unlock-limit.ts";
import { StoreAuthority } from "../surfaces/ssh-agent/sources/certificate-authority.ts";
import { KeySources } from "../surfaces/ssh-agent/sources/key-sources.ts";

/** Files of host keys that OpenSSH reads, besides those of the user (ssh_config(5), GlobalKnownHostsFile). */
const SYSTEM_KNOWN_HOSTS = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];
const USER_KNOWN_HOSTS = [".ssh/known_hosts", ".ssh/known_hosts2"];

/** The parts of a daemon that its SSH agent uses. */
export interface SshAgentFoundation extends Pick<StoreParts, "store" | "signIn" | "tokens" | "facts"> {
  /** The configuration as it applies now. */
  readonly current: () => LoadedConfig;
  readonly changes: StoreChanges;
  /** Address of the web UI, without a final slash; undefined without one. */
  readonly webUrl: () => string | undefined;
}

/** Builds the SSH agent. Only a daemon with `agent.enabled` loads this file. */
export function assembleSshAgent(host: Host, parts: SshAgentFoundation): BuiltSshAgent {
  const { places, environment, clock, logger } = host;
  const { store, signIn, tokens, facts, current, changes, webUrl } = parts;
  const desktop = systemDesktop(environment);
  const questions = new WaitingQuestions({
    askpass: askpassProgram(environment),
    announce: async (question) => {
      const outcome = await desktop.raise(questionNotification(question, webUrl()));
      if (outcome !== "done") logger.warn({ outcome }, "no notification of a question could be raised");
    },
    clock,
    logger,
  });
  const sources = new KeySources(
    {
      store,
      changes,
      signIn,
      authority: tokens && new StoreAuthority(tokens.client, () => clock.now()),
      questions,
      context: { username: facts.username, env: (name) => environment[name] },
      clock,
      logger,
    },
    current().config,
  );
  // Programs of PuTTY look nowhere else. If Pageant itself runs, the status names it as a socket in use.
  const pageant = places.platform.hasNamedPipes
    ? pageantPipeName(userInfo().username, protectMemory)
    : undefined;
  const settings = (): SshAgentSettings => {
    const { agent } = current().config;
    const expanded = (path: string): string => expandHome(path, places.home, places.platform);
    const relay = agent.relay.map((path) => (path === SSH_AUTH_SOCK ? environment[SSH_AUTH_SOCK] : path));
    return {
      path: sshAgentSocketPath(places, agent),
      confirm: agent.confirm,
      relay: relay.filter((path) => path !== undefined && path !== "").map((path) => expanded(path ?? "")),
      sockets: [
        ...agent.sockets.map(({ path, keys }) => ({ path: expanded(path), keys })),
        ...(pageant === undefined ? [] : [{ path: pageant, keys: agent.keys.map(({ name }) => name) }]),
      ],
    };
  };
  const agent = new SshAgent({
    sources: () => sources.list,
    lookAgain: () => sources.lookAgain(),
    findKey: (name) => sources.findKey(name),
    unlockKey: limitUnlocking((name, passphrase) => sources.unlockKey(name, passphrase), clock),
    questions,
    settings,
    descriptor: activatedSockets(environment, process.pid).get("agent"),
    knownHostsFiles: [...USER_KNOWN_HOSTS.map((file) => join(places.home, file)), ...SYSTEM_KNOWN_HOSTS],
    authorities: () => current().config.ssh.certificate_authorities,
    runtimeFolder: places.runtime,
    clock,
    logger,
  });
  return {
    agent,
    surface: new SshAgentSurface(agent, logger),
    configure: (config) => sources.configure(config),
    keyMade: (pair) => sources.keyMade(pair),
    close: async () => {
      questions.refuseAll();
      await sources.stop();
    },
  };
}
