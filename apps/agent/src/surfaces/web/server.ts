import { once } from "node:events";
import type { IncomingMessage, RequestListener, Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { bindLocalhost, systemCode, type Clock } from "@devplat/base";
import { closeServer, createBoundedServer } from "../listening/bounded-server.ts";
import { guardedListener } from "../http-api/guarded-listener.ts";
import type { Problem } from "../http-api/problems/problem.ts";
import type { Surface, SurfaceStatus } from "../surface.ts";
import { AgentError } from "../../errors.ts";
import { MAX_WEB_CONNECTIONS, type Connections } from "./connections.ts";
import { WebAccessCheck } from "./access/access-check.ts";
import { parseListenAddress, type ListenAddress } from "./listen-address.ts";
import { renderMarkdown } from "./pages/markdown.ts";
import type { PortGuard } from "./access/port-guard.ts";
import { portOwner } from "./access/port-owner.ts";
import type { RouteParts, SiteParts } from "./routes/route-parts.ts";
import { routes } from "./routes/routes.ts";
import type { Sessions } from "./access/sessions.ts";
import type { WebKey } from "./access/web-key.ts";

/** Ended sessions are looked for this often, in milliseconds. */
const SESSION_SWEEP_MS = 60_000;
/** Refused requests are logged once in this time, in milliseconds, so that they do not fill the log. */
const REFUSAL_LOG_MS = 60_000;

/** Values of the configuration. */
export interface WebServerOptions {
  /** `web.listen`. Port 0 takes any free port. */
  readonly listen: string;
  /** `web.require_unlock`: `auto` requires it only where the owner of a connection cannot be read. */
  readonly requireUnlock: "auto" | boolean;
  /** `web.login_text` and `web.secret_view_text`, Markdown. Empty for none. */
  readonly texts: { readonly login: string; readonly secretView: string };
}

export interface WebServerParts extends SiteParts, Pick<RouteParts, "csrf" | "streams" | "live" | "assets"> {
  readonly guard: PortGuard;
  readonly webKey: WebKey;
  readonly sessions: Sessions;
  readonly connections: Connections;
  readonly clock: Clock;
}

/** The daemon's web UI and JSON API on a loopback port. */
export class WebServer implements Surface {
  readonly #parts: WebServerParts;
  readonly #options: WebServerOptions;
  readonly #listen: ListenAddress;
  /** One for each address: `localhost` has two. */
  #servers: Server[] = [];
  #url = "";
  readonly #stopped = new AbortController();
  #sweep: NodeJS.Timeout | undefined;
  #refusalLoggedAt = Number.NEGATIVE_INFINITY;

  /** @throws AgentError `listen_refused` when the address is not loopback */
  constructor(parts: WebServerParts, options: WebServerOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#listen = parseListenAddress(options.listen);
  }

  /** `http://host:port`, after {@link WebServer.start} has resolved. */
  get url(): string {
    return this.#url;
  }

  /** Makes a link that admits the user's browser once. */
  issueLink(): { readonly url: string; readonly expiresAt: number } {
    const { code, expiresAt } = this.#parts.sessions.issueLink();
    return { url: `${this.#url}/unlock?code=${code}`, expiresAt };
  }

  /**
   * Binds the port and publishes the web key.
   * @throws AgentError `port_in_use`, naming the owner where it can be read
   */
  async start(): Promise<void> {
    const { guard, sessions, webKey, connections, live, logger } = this.#parts;
    const { requireUnlock } = this.#options;
    const ownersVisible = await guard.works();
    const unlockRequired = requireUnlock === "auto" ? !ownersVisible : requireUnlock;
    if (!ownersVisible && !unlockRequired)
      logger.warn({}, "every user of this host can use the web port: web.require_unlock is false");
    const listener = Promise.withResolvers<RequestListener>();
    const accept = async (socket: Socket): Promise<void> => {
      connections.add(socket);
      if (!ownersVisible) return;
      if ((await guard.ownerOf(socket)) === "own") connections.accept(socket);
      else connections.refuse(socket);
    };
    // The routes need the port, so requests wait for them. The owner of a connection is checked from the first one on.
    const port = await this.#bind(() => {
      const server = createBoundedServer(MAX_WEB_CONNECTIONS);
      server.on("connection", (socket: Socket) => void accept(socket));
      server.on("request", (...args) => void listener.promise.then((serve) => serve(...args)));
      return server;
    });

    // Cookies have no port. Another daemon of this host must not get the same cookie name.
    const cookieName = `daemon_session_${port}`;
    const accessCheck = new WebAccessCheck({
      guard,
      sessions,
      webKey,
      ownersVisible,
      unlockRequired,
      cookieName,
    });
    const texts = {
      login: await renderMarkdown(this.#options.texts.login),
      secretView: await renderMarkdown(this.#options.texts.secretView),
    };
    const app = routes({
      ...this.#parts,
      accessCheck,
      cookieName,
      texts,
      origin: () => this.#url,
      openLink: () => this.issueLink(),
      surface: "api",
    });
    const refusalOf = async (request: IncomingMessage): Promise<Problem | undefined> => {
      const refusal = await accessCheck.refusal(request);
      if (refusal !== undefined) this.#logRefusal(refusal);
      else if (!ownersVisible && accessCheck.isUnlocked(request)) connections.accept(request.socket);
      return refusal;
    };
    listener.resolve(guardedListener(app, refusalOf, logger));
    await webKey.publish(this.#url);
    live.follow(this.#stopped.signal);
    this.#sweep = setInterval(() => sessions.endExpired(), SESSION_SWEEP_MS).unref();
    logger.info({ url: this.#url, unlock: unlockRequired }, "web UI listens");
  }

  /** The web section applies after the next start. */
  async reconcile(): Promise<void> {}

  /** The status has no part for the web port. Its reader has reached it, or finds its address with the web key. */
  status(): SurfaceStatus {
    return {};
  }

  /** Closes streams and connections, and removes the web key. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    clearInterval(this.#sweep);
    const { login, webKey, streams } = this.#parts;
    // A login that waits for a push approval would not end.
    login?.cancel();
    await webKey.withdraw();
    const closeStreams = (): void => streams.closeAll();
    await Promise.all(this.#servers.map((server) => closeServer(server, closeStreams)));
  }

  /** Binds every address, and sets a URL that leads only to bound addresses. @returns the port */
  async #bind(create: () => Server): Promise<number> {
    const { address, port, urlHost } = this.#listen;
    const bind = (host: string, at: number): Promise<number> => this.#bindOne(create(), host, at);
    if (address !== "localhost") {
      const bound = await bind(address, port);
      this.#url = `http://${urlHost}:${bound}`;
      return bound;
    }
    const unbind = async (): Promise<void> => {
      for (const server of this.#servers.splice(0)) {
        server.close();
        server.closeAllConnections();
      }
    };
    const bound = await bindLocalhost(port, bind, unbind);
    const [only, second] = bound.addresses;
    // The name would also lead to the address of another program.
    const host = second === undefined && only !== undefined ? inUrl(only) : urlHost;
    if (host !== urlHost)
      this.#parts.logger.warn(
        { address: host },
        "localhost is one address on this host; the web UI is there",
      );
    this.#url = `http://${host}:${bound.port}`;
    return bound.port;
  }

  async #bindOne(server: Server, host: string, port: number): Promise<number> {
    try {
      server.listen({ host, port, exclusive: true });
      await once(server, "listening");
      this.#servers.push(server);
      return (server.address() as AddressInfo).port;
    } catch (error) {
      if (systemCode(error) !== "EADDRINUSE") throw error;
      const owner = await portOwner(host, port);
      const by = owner === undefined ? "another program" : owner;
      throw new AgentError(
        "port_in_use",
        `Cannot listen on ${inUrl(host)}:${port}: port ${port} is in use by ${by}`,
        {
          hint: "Stop it, or set web.listen to another port. 8200 is also the default port of Vault itself.",
          cause: error,
        },
      );
    }
  }

  #logRefusal(problem: Problem): void {
    const now = this.#parts.clock.monotonic();
    if (now - this.#refusalLoggedAt < REFUSAL_LOG_MS) return;
    this.#refusalLoggedAt = now;
    this.#parts.logger.warn({ code: problem.code }, "request to the web port refused");
  }
}

/** An address as it is written in a URL. */
function inUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}
