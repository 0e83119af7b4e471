import { ForwardError } from "../errors/forward-error.ts";
import { parseHops, type Hop, type RemoteEntry } from "../file/remote-entry.ts";
import type { ResolvedHost, ResolveHost } from "./user-configuration.ts";

/** More jump hosts than anybody has, so that a circle of them ends. */
const MAX_HOSTS = 8;

/** One host of a route. */
export interface RouteHost extends ResolvedHost {
  /** As the user wrote it: `%n` in the values. */
  readonly name: string;
  /** `host:port`, by which its key is pinned. */
  readonly keyName: string;
}

/** The hosts to a remote in the order in which they are reached; the remote is the last one. */
export type Route = readonly [...hops: RouteHost[], remote: RouteHost];

/**
 * Finds the jump hosts of a remote, as ssh does: a host that is named in a chain uses the hosts before it in that chain,
 * and only the first one of a chain has jump hosts of its own configuration.
 *
 * @throws ForwardError `configuration_refused`
 */
export async function findRoute(entry: RemoteEntry, resolve: ResolveHost): Promise<Route> {
  const { host, user, port, proxy_jump: jump } = entry;
  const resolved = await resolve({ host, user, port });
  // The port of the entry wins over the one that the user's configuration has for the host.
  const remote = routeHost(host, { ...resolved, port, ...(user !== undefined && { user }) });
  if (jump === undefined) return await withHops(remote, remote.proxyJump, [], resolve);
  return await withHops({ ...remote, proxyCommand: undefined }, jump, [], resolve);
}

async function withHops(
  first: RouteHost,
  jump: string | undefined,
  rest: readonly RouteHost[],
  resolve: ResolveHost,
): Promise<Route> {
  const hops = jump === undefined ? [] : parseHops(jump);
  if (hops === undefined) throw refused(first.name, "its ProxyJump is not a list of hosts");
  const later = [{ ...first, ...(hops.length > 0 && { proxyCommand: undefined }) }, ...rest];
  const [nearest, ...others] = await Promise.all(hops.map((hop) => resolveHop(hop, resolve)));
  if (nearest === undefined) return later as unknown as Route;
  if (hops.length + later.length > MAX_HOSTS)
    throw refused(first.name, `more than ${MAX_HOSTS} hosts are on the way`);
  const between = others.map((each) => ({ ...each, proxyCommand: undefined }));
  return await withHops(nearest, nearest.proxyJump, [...between, ...later], resolve);
}

async function resolveHop(hop: Hop, resolve: ResolveHost): Promise<RouteHost> {
  const resolved = await resolve(hop);
  return routeHost(hop.host, {
    ...resolved,
    ...(hop.user !== undefined && { user: hop.user }),
    ...(hop.port !== undefined && { port: hop.port }),
  });
}

function routeHost(name: string, resolved: ResolvedHost): RouteHost {
  const host = resolved.hostName.toLowerCase();
  return { ...resolved, name, keyName: `${host.includes(":") ? `[${host}]` : host}:${resolved.port}` };
}

function refused(host: string, reason: string): ForwardError {
  return new ForwardError("configuration_refused", `Cannot use the ssh configuration of ${host}: ${reason}`, {
    hint: `Run 'ssh -G ${host}', or set the jump hosts with --proxy-jump.`,
  });
}
