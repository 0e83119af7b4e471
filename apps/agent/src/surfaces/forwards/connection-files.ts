import type { Logger } from "@devplat/base";
import type { RemoteEntry } from "./file/remote-entry.ts";
import { configuredHosts, type ConnectionConfiguration } from "./openssh/connection-configuration.ts";
import type { ConnectionPaths, ControlFolder } from "./openssh/control-folder.ts";
import { knownHostsText } from "./openssh/known-hosts.ts";
import { findRoute, type Route } from "./openssh/route.ts";
import type { ResolveHost } from "./openssh/user-configuration.ts";

/** Whom a connection trusts besides the pins. */
export interface TrustSettings {
  /** Lines of `ssh.certificate_authorities`. */
  readonly authorities: readonly string[];
  /** `ssh.insecure_ignore_host_key` */
  readonly ignoreHostKeys: boolean;
}

/** Facts by which the daemon's SSH agent chooses keys for a host. */
export interface AgentListing {
  /** `IdentityAgent` of the user's configuration. */
  readonly userAgent: string | undefined;
  /** Text in the form of known_hosts: what is believed of the host and of its jump hosts. */
  readonly knownHosts: string;
}

export interface ConfigurationParts {
  readonly folder: Pick<ControlFolder, "write">;
  readonly resolve: ResolveHost;
  readonly logger: Logger;
  /** Asked for each connection, as the configuration may be reloaded. */
  readonly trust: () => TrustSettings;
  /** Socket of the daemon's SSH agent for that host; undefined: the user's own agent. */
  readonly identityAgent: (entry: RemoteEntry, listing: AgentListing) => Promise<string | undefined>;
}

/**
 * The configuration of a connection that may log in. Writes the files with the host keys that it names.
 * @throws ForwardError | AgentError
 */
export async function configurationOf(
  parts: ConfigurationParts,
  paths: ConnectionPaths,
  entry: RemoteEntry,
): Promise<ConnectionConfiguration> {
  const route = await findRoute(entry, parts.resolve);
  const knownHosts = await writeKnownHosts(parts, paths, route, entry);
  const hostKey = parts.trust().ignoreHostKeys ? "ignore" : "verify";
  if (hostKey === "ignore") {
    parts.logger.warn({ host: entry.host }, "host keys are not checked: ssh.insecure_ignore_host_key is on");
  }
  return {
    hosts: configuredHosts(route, (_, index) => ({ knownHostsFile: paths.knownHosts(index), hostKey })),
    identityAgent: await parts.identityAgent(entry, { userAgent: route.at(-1)?.identityAgent, knownHosts }),
  };
}

/** @returns the text of all files */
async function writeKnownHosts(
  { folder, trust }: ConfigurationParts,
  paths: ConnectionPaths,
  route: Route,
  entry: RemoteEntry,
): Promise<string> {
  const { authorities } = trust();
  const texts = await Promise.all(
    route.map(async ({ hostName, keyName }, index) => {
      const pin = index === route.length - 1 ? entry.host_key : entry.hop_keys?.[keyName];
      const text = knownHostsText(hostName, { pin, authorities });
      await folder.write(paths.knownHosts(index), text);
      return text;
    }),
  );
  return texts.join("");
}
