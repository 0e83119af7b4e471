import { isIP } from "node:net";
import { systemCode } from "@devplat/base";
import { Pool, ProxyAgent, buildConnector, type Dispatcher } from "undici";
import { HttpClientError } from "./errors.ts";
import { proxyText, type Proxy } from "./proxy.ts";

export interface ConnectionOptions extends Omit<Pool.Options, "connect" | "factory"> {
  /** TLS and time limit of connections to the origin. */
  readonly connect?: buildConnector.BuildOptions;
}

/**
 * Connections to one origin, direct or through a proxy: by CONNECT for https, and with the whole URL in the request line
 * for http, because many proxies allow CONNECT to port 443 only.
 *
 * A request fails with HttpClientError `proxy_unavailable` if the proxy cannot be reached or does not connect.
 */
export function connectionsTo(
  origin: string,
  proxy: Proxy | undefined,
  options: ConnectionOptions,
): Dispatcher {
  const { connect = {}, ...limits } = options;
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
    proxyTunnel: false,
    clientFactory: (to) => new Pool(to, { connect: connectTo }),
    // Called with the proxy's address for plain http, with the origin's for what goes through a tunnel.
    factory: (to, given) =>
      new URL(to).origin === proxy.origin
        ? new Pool(to, { ...limits, connect: connectTo })
        : new Pool(to, { ...limits, connect: tunnelOf(given, proxy) }),
  });
}

function namingProxy(proxy: Proxy, connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    const { servername: given, ...others } = options;
    // undici gives null for plain http.
    const servername = given ?? "";
    // TLS has no server name for an address, and Node throws for one.
    const isName = servername !== "" && isIP(servername.replace(/^\[|\]$/g, "")) === 0;
    const fail = (error: unknown): void => {
      callback(
        unavailable(proxy, `cannot be reached: ${systemCode(error) ?? "connection fault"}`, error),
        null,
      );
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

/** undici's own tunnel, whose refusals name the proxy. */
function tunnelOf(given: object, proxy: Proxy): buildConnector.connector {
  const { connect } = given as { connect: buildConnector.connector };
  return (options, callback) => {
    connect(options, (...[error, socket]: buildConnector.CallbackArgs) => {
      if (error === null) return callback(null, socket);
      const status = /^Proxy response \((\d{3})\)/.exec(error.message)?.[1];
      callback(status === undefined ? error : refused(proxy, status, error), null);
    });
  };
}

/** What a proxy's status says to a request that was meant for it. */
export function refused(proxy: Proxy, status: string, cause?: unknown): HttpClientError {
  const why = status === "407" ? "it wants other credentials (407)" : `it answers ${status}`;
  return unavailable(proxy, `does not connect: ${why}`, cause);
}

function unavailable(proxy: Proxy, fault: string, cause: unknown): HttpClientError {
  return new HttpClientError("proxy_unavailable", `${proxyText(proxy)} ${fault}`, {
    hint: `Check ${proxy.variable}, or name the host in NO_PROXY.`,
    remedy: "retry",
    cause,
  });
}
