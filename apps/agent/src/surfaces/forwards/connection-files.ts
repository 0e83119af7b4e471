import type { ConnectionParts } from "./connection.ts";
import type { RemoteEntry } from "./file/remote-entry.ts";
import { configuredHosts, type ConnectionConfiguration } from "./openssh/connection-configuration.ts";
import type { ConnectionPaths } from "./openssh/control-folder.ts";
import { knownHostsText } from "./openssh/known-hosts.ts";
import { findRoute, type Route } from "./openssh/route.ts";

export type ConfigurationParts = Pick<
  ConnectionParts,
  "folder" | "resolve" | "trust" | "identityAgent" | "logger"
>;

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
