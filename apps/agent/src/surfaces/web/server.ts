import { once } from "node:events";
import type { IncomingMessage, RequestListener, Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { bindLocalhost, systemCode, type Clock } from "@devplat/base";
import { Assets, CsrfTokens, EventStreams, addCommonAssets } from "@devplat/web-kit";
import { closeServer, createBoundedServer } from "../http-api/bounded-server.ts";
import { guardedListener } from "../http-api/guarded-listener.ts";
import type { Problem } from "../http-api/problem.ts";
import type { Surface, SurfaceStatus } from "../surface.ts";
import { AgentError } from "../../errors.ts";
import { Connections, MAX_WEB_CONNECTIONS } from "./connections.ts";
import { WebAccessCheck } from "./access/access-check.ts";
import { parseListenAddress, type ListenAddress } from "./listen-address.ts";
import { LiveUpdates } from "./routes/live-updates.ts";
import { addPageAssets } from "./pages/layout.ts";
import { renderMarkdown } from "./pages/markdown.ts";
import type { PortGuard } from "./access/port-guard.ts";
import { portOwner } from "./access/port-owner.ts";
import type { SiteParts } from "./routes/route-parts.ts";
import { routes } from "./routes/routes.ts";
import { Sessions } from "./access/sessions.ts";
import { WebKey } from "./access/web-key.ts";

/** Ended sessions are looked for this often, in milliseconds. */
const SESSION_SWEEP_MS = 60_000;
/** Refused requests are logged once in this time, in milliseconds, so that they do not fill the log. */
const REFUSAL_LOG_MS = 60_000;

export interface WebServerOptions extends SiteParts {
  /** `web.listen`; port 0 takes any free one. */
  readonly listen: string;
  /** `web.require_unlock`: `auto` asks for it exactly where the owner of a connection cannot be read. */
  readonly requireUnlock: "auto" | boolean;
  /** Folder for the web key, with mode 0700. */
  readonly runtimeFolder: string;
  /** `web.login_text` and `web.secret_view_text`, Markdown; empty for none. */
  readonly texts: { readonly login: string; readonly secretView: string };
  readonly clock: Clock;
  readonly guard: PortGuard;
}

/** The daemon's web UI and JSON API on a loopback port. */
export class WebServer implements Surface {
  readonly #options: WebServerOptions;
  readonly #listen: ListenAddress;
  readonly #clock: Clock;
  readonly #guard: PortGuard;
  readonly #webKey: WebKey;
  readonly #streams = new EventStreams();
  readonly #sessions: Sessions;
  readonly #live: LiveUpdates;
  readonly #connections = new Connections();
  /** One for each address: `localhost` has two. */
  #servers: Server[] = [];
  #url = "";
  readonly #stopped = new AbortController();
  #sweep: NodeJS.Timeout | undefined;
  #refusalLoggedAt = Number.NEGATIVE_INFINITY;

  /** @throws AgentError `listen_refused` when the address is not loopback */
  constructor(options: WebServerOptions) {
    this.#options = options;
    this.#listen = parseListenAddress(options.listen);
    this.#clock = options.clock;
    this.#guard = options.guard;
    this.#webKey = new WebKey(options.runtimeFolder);
    this.#sessions = new Sessions((session) => this.#streams.closeOwned(session), this.#clock);
    const { view, enrolments, signIn, logger } = options;
    this.#live = new LiveUpdates({
      view,
      enrolments,
      token: () => signIn.token(),
      streams: this.#streams,
      logger,
    });
  }

  /** `http://host:port`, once {@link WebServer.start} has resolved. */
  get url(): string {
    return this.#url;
  }

  /** A link that lets the user's browser in once. */
  issueLink(): { readonly url: string; readonly expiresAt: number } {
    const { code, expiresAt } = this.#sessions.issueLink();
    return { url: `${this.#url}/unlock?code=${code}`, expiresAt };
  }

  /**
   * Binds the port and publishes the web key.
   * @throws AgentError `port_in_use`, naming the owner where it can be read
   */
  async start(): Promise<void> {
    const ownersVisible = await this.#guard.works();
    const unlockRequired =
      this.#options.requireUnlock === "auto" ? !ownersVisible : this.#options.requireUnlock;
    if (!ownersVisible && !unlockRequired) {
      this.#options.logger.warn(
        {},
        "every user of this host can use the web port: web.require_unlock is false",
      );
    }
    const answer = Promise.withResolvers<RequestListener>();
    const accept = async (socket: Socket): Promise<void> => {
      this.#connections.add(socket);
      if (!ownersVisible) return;
      if ((await this.#guard.ownerOf(socket)) === "own") this.#connections.accept(socket);
      else this.#connections.refuse(socket);
    };
    // The routes need the port, so requests wait for them. The owner of a connection is checked from the first one on.
    const port = await this.#bind(() => {
      const server = createBoundedServer(MAX_WEB_CONNECTIONS);
      server.on("connection", (socket: Socket) => void accept(socket));
      server.on("request", (...exchange) => void answer.promise.then((serve) => serve(...exchange)));
      return server;
    });

    const assets = new Assets();
    addCommonAssets(assets);
    addPageAssets(assets);
    // Cookies know no ports: another daemon of this host must not take this one's name.
    const cookieName = `daemon_session_${port}`;
    const { logger } = this.#options;
    const [sessions, streams, live, guard, webKey] = [
      this.#sessions,
      this.#streams,
      this.#live,
      this.#guard,
      this.#webKey,
    ];
    const accessCheck = new WebAccessCheck({
      guard,
      sessions,
      webKey,
      ownersVisible,
      unlockRequired,
      cookieName,
    });
    const csrf = new CsrfTokens(this.#clock);
    const texts = {
      login: await renderMarkdown(this.#options.texts.login),
      secretView: await renderMarkdown(this.#options.texts.secretView),
    };
    const app = routes({
      ...this.#options,
      accessCheck,
      sessions,
      csrf,
      streams,
      live,
      assets,
      cookieName,
      texts,
      origin: () => this.#url,
      openLink: () => this.issueLink(),
      surface: "api",
    });
    const refusalOf = async (request: IncomingMessage): Promise<Problem | undefined> => {
      const refusal = await accessCheck.refusal(request);
      if (refusal !== undefined) this.#logRefusal(refusal);
      else if (!ownersVisible && accessCheck.isUnlocked(request)) this.#connections.accept(request.socket);
      return refusal;
    };
    answer.resolve(guardedListener(app, refusalOf, logger));
    await webKey.publish(this.#url);
    this.#live.follow(this.#stopped.signal);
    this.#sweep = setInterval(() => this.#sessions.endExpired(), SESSION_SWEEP_MS).unref();
    logger.info({ url: this.#url, unlock: unlockRequired }, "web UI listens");
  }

  /** The web section applies after the next start. */
  async reconcile(): Promise<void> {}

  /** The status tells nothing of the web port: its reader has reached it, or finds its address with the web key. */
  status(): SurfaceStatus {
    return {};
  }

  /** Closes streams and connections, and withdraws the key. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    clearInterval(this.#sweep);
    // One that waits for a push approval would wait on.
    this.#options.login?.cancel();
    await this.#webKey.withdraw();
    const closeStreams = (): void => this.#streams.closeAll();
    await Promise.all(this.#servers.map((server) => closeServer(server, closeStreams)));
  }

  /** Binds every address, and finds the URL that leads to what is bound and nothing else. @returns the port */
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
    // The name would also lead to the address that is not ours.
    const host = second === undefined && only !== undefined ? inUrl(only) : urlHost;
    if (host !== urlHost)
      this.#options.logger.warn(
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
    const now = this.#clock.monotonic();
    if (now - this.#refusalLoggedAt < REFUSAL_LOG_MS) return;
    this.#refusalLoggedAt = now;
    this.#options.logger.warn({ code: problem.code }, "request to the web port refused");
  }
}

/** An address as it is written in a URL. */
function inUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}
