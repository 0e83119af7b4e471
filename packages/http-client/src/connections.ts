import { isIP } from "node:net";
import { Pool, ProxyAgent, buildConnector, errors, type Dispatcher } from "undici";
import type { Proxy } from "./proxy-address.ts";
import { lostProxy, refusedByProxy } from "./proxy-fault.ts";

export interface ConnectionOptions extends Omit<Pool.Options, "connect" | "factory"> {
  /** TLS and time limit of connections to the origin. */
  readonly connect?: buildConnector.BuildOptions;
  /** Whether http also uses CONNECT. Upgrades of a connection need it. Default false. */
  readonly tunnelsHttp?: boolean;
}

/**
 * Connections to one origin, direct or through a proxy. https uses CONNECT; http sends the whole URL in the request line,
 * because many proxies allow CONNECT only to port 443. It uses undici, and is for streams and upgrades. Small requests use
 * `HttpClient`.
 *
 * A request fails with HttpClientError `proxy_unavailable` if the proxy cannot be reached or does not connect.
 */
export function connectionsTo(
  origin: string,
  proxy: Proxy | undefined,
  options: ConnectionOptions,
): Dispatcher {
  const { connect = {}, tunnelsHttp = false, ...limits } = options;
  if (proxy === undefined) return new Pool(origin, { ...limits, connect });
  const connectTo = namingProxy(
    proxy,
    buildConnector(connect.timeout === undefined ? {} : { timeout: connect.timeout }),
  );
  return new ProxyAgent({
    ...limits,
    uri: proxy.origin,
    ...(proxy.authorization !== undefined && { token: proxy.authorization }),
    requestTls: connect,
    proxyTunnel: tunnelsHttp,
    clientFactory: (to) => new Pool(to, { connect: connectTo }),
    // undici calls it with the proxy's address for plain http, and with the origin for a tunnel.
    factory: (to, given) =>
      new URL(to).origin === proxy.origin
        ? new Pool(to, { ...limits, connect: connectTo })
        : new Pool(to, { ...limits, connect: tunnelOf(given, proxy) }),
  });
}

function namingProxy(proxy: Proxy, connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    const { servername: given, ...others } = options;
    // undici passes null for plain http.
    const servername = given ?? "";
    // TLS has no server name for an IP address, and Node throws an error for one.
    const isName = servername !== "" && isIP(servername.replace(/^\[|\]$/g, "")) === 0;
    const fail = (error: unknown): void => {
      callback(lostProxy(proxy, error), null);
    };
    try {
      connect(
        { ...others, ...(isName && { servername }) },
        (...[error, socket]: buildConnector.CallbackArgs) => {
          if (error === null) callback(null, socket);
          else fail(error);
        },
      );
    } catch (error) {
      fail(error);
    }
  };
}

/** undici's tunnel, with errors that name the proxy. */
function tunnelOf(given: object, proxy: Proxy): buildConnector.connector {
  const { connect } = given as { connect: buildConnector.connector };
  return (options, callback) => {
    connect(options, (...[error, socket]: buildConnector.CallbackArgs) => {
      if (error === null) return callback(null, socket);
      const status = /^Proxy response \((\d{3})\)/.exec(error.message)?.[1];
      if (status !== undefined) return callback(refusedByProxy(proxy, Number(status), error), null);
      // An HTTP error comes from the proxy, because the connection to the host begins with TLS.
      const isOfProxy = error instanceof errors.HTTPParserError || error instanceof errors.SocketError;
      callback(isOfProxy ? lostProxy(proxy, error) : error, null);
    });
  };
}
