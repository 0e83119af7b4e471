import { once } from "node:events";
import {
  STATUS_CODES,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { systemClock, systemCode, type Clock, type Logger } from "@devplat/base";
import { Assets, CsrfTokens, EventStreams, SECURITY_HEADERS, addCommonAssets } from "@devplat/web-kit";
import { PROBLEMS, type Problem } from "../api/problem.ts";
import { AgentError } from "../errors.ts";
import type { SignIn } from "../auth/sign-in.ts";
import type { Clipboard } from "../desktop/clipboard.ts";
import type { EnrolmentControl } from "./enrolment-routes.ts";
import type { SetupState } from "./setup-state.ts";
import type { WebLogin } from "./web-login.ts";
import type { SecretEditor } from "../secrets/secret-editor.ts";
import type { DaemonView } from "../status.ts";
import type { RuleControl } from "../sync/rule-control.ts";
import { refuse } from "./answer.ts";
import type { ConfigurationView } from "./configuration.ts";
import { Gate, pathOf } from "./gate.ts";
import { parseListenAddress, type ListenAddress } from "./listen-address.ts";
import { LiveUpdates } from "./live-updates.ts";
import { addPageAssets } from "./pages/layout.ts";
import { renderMarkdown } from "./pages/markdown.ts";
import { PortGuard } from "./port-guard.ts";
import { portOwner } from "./port-owner.ts";
import { routes } from "./routes.ts";
import { Sessions } from "./sessions.ts";
import { WebKey } from "./web-key.ts";

/** Any local user can open connections; these bounds keep them from holding many for long. Milliseconds, bytes, count. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 256;
/** At the end, answers under way get this long, in milliseconds. */
const CLOSE_GRACE_MS = 1000;
/** Ended sessions are looked for this often, in milliseconds. */
const SESSION_SWEEP_MS = 60_000;
/** Refused connections of others are logged once in this time, in milliseconds: they must not fill the log. */
const REFUSAL_LOG_MS = 60_000;

export interface WebServerOptions {
  readonly view: DaemonView;
  readonly secrets: SecretEditor;
  readonly signIn: Pick<SignIn, "token" | "invalidate">;
  /** Undefined for a store that asks nobody to sign in. */
  readonly login: WebLogin | undefined;
  readonly signOut: (() => Promise<void>) | undefined;
  readonly enrolments: EnrolmentControl;
  readonly setup: Pick<SetupState, "isLeft" | "leave">;
  readonly clipboard: Clipboard;
  readonly ruleControl: RuleControl;
  readonly configuration: ConfigurationView;
  /** `web.listen`; port 0 takes any free one. */
  readonly listen: string;
  /** `web.require_unlock`: `auto` asks for it exactly where the owner of a connection cannot be read. */
  readonly requireUnlock: "auto" | boolean;
  /** Folder for the web key, with mode 0700. */
  readonly runtimeFolder: string;
  readonly logger: Logger;
  /** `web.login_text` and `web.secret_view_text`, Markdown. Default: none. */
  readonly texts?: { readonly login: string; readonly secretView: string };
  readonly clock?: Clock;
  /** Default: what the system says. */
  readonly guard?: PortGuard;
}

/** The daemon's web UI and JSON API on a loopback port. */
export class WebServer {
  readonly #options: WebServerOptions;
  readonly #listen: ListenAddress;
  readonly #clock: Clock;
  readonly #guard: PortGuard;
  readonly #webKey: WebKey;
  readonly #streams = new EventStreams();
  readonly #sessions: Sessions;
  readonly #live: LiveUpdates;
  #server: Server | undefined;
  #url = "";
  #refusalLoggedAt = Number.NEGATIVE_INFINITY;

  /** @throws AgentError `listen_refused` when the address is not loopback */
  constructor(options: WebServerOptions) {
    this.#options = options;
    this.#listen = parseListenAddress(options.listen);
    this.#clock = options.clock ?? systemClock;
    this.#guard = options.guard ?? new PortGuard();
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

  /** `http://host:port`, once {@link WebServer.listen} has resolved. */
  get url(): string {
    return this.#url;
  }

  /**
   * Binds the port and publishes the web key.
   *
   * @returns the URL
   * @throws AgentError `port_in_use`, naming the owner where it can be read
   */
  async listen(): Promise<string> {
    const ownersVisible = await this.#guard.works();
    const unlockRequired =
      this.#options.requireUnlock === "auto" ? !ownersVisible : this.#options.requireUnlock;
    if (!ownersVisible && !unlockRequired) {
      this.#options.logger.warn(
        {},
        "every user of this host can use the web port: web.require_unlock is false",
      );
    }
    const server = createServer({
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    });
    server.maxConnections = MAX_CONNECTIONS;
    const port = await this.#bind(server);
    this.#server = server;
    this.#url = `http://${this.#listen.urlHost}:${port}`;

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
    const gate = new Gate({ guard, sessions, webKey, ownersVisible, unlockRequired, cookieName });
    const csrf = new CsrfTokens(this.#clock);
    const texts = {
      login: await renderMarkdown(this.#options.texts?.login ?? ""),
      secretView: await renderMarkdown(this.#options.texts?.secretView ?? ""),
    };
    const url = (): string => this.#url;
    const app = routes({
      ...this.#options,
      gate,
      sessions,
      csrf,
      streams,
      live,
      assets,
      cookieName,
      texts,
      url,
    });
    const handle = getRequestListener(app.fetch);

    if (ownersVisible) server.on("connection", (socket) => void guard.ownerOf(socket));
    server.on("request", (request, response) => {
      void this.#handle(gate, handle, request, response);
    });
    server.on("clientError", (error, socket) => {
      if (socket.writable) socket.end(unreadable(error));
    });
    await webKey.publish(this.#url);
    logger.info({ url: this.#url, unlock: unlockRequired }, "web UI listens");
    return this.#url;
  }

  /** Serves until the signal fires, then closes streams and connections and withdraws the key. */
  async run(signal: AbortSignal): Promise<void> {
    const server = this.#server;
    if (server === undefined) throw new TypeError("listen() comes before run()");
    this.#live.follow(signal);
    const sweep = setInterval(() => this.#sessions.endExpired(), SESSION_SWEEP_MS).unref();
    if (!signal.aborted) await once(signal, "abort");
    clearInterval(sweep);
    await this.#webKey.withdraw();
    const closed = once(server, "close");
    server.close();
    this.#streams.closeAll();
    server.closeIdleConnections();
    const force = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
    await closed;
    clearTimeout(force);
  }

  async #bind(server: Server): Promise<number> {
    try {
      server.listen({ host: this.#listen.address, port: this.#listen.port, exclusive: true });
      await once(server, "listening");
      return (server.address() as AddressInfo).port;
    } catch (error) {
      if (systemCode(error) !== "EADDRINUSE") throw error;
      const owner = await portOwner(this.#listen);
      const by = owner === undefined ? "another program" : owner;
      const where = `${this.#listen.urlHost}:${this.#listen.port}`;
      throw new AgentError(
        "port_in_use",
        `Cannot listen on ${where}: port ${this.#listen.port} is in use by ${by}`,
        {
          hint: "Stop it, or set web.listen to another port. 8200 is also the default port of Vault itself.",
          cause: error,
        },
      );
    }
  }

  async #handle(
    gate: Gate,
    next: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    // Set before anything can answer, so that no answer goes out without them.
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    try {
      const refusal = await gate.refusal(request);
      if (refusal === undefined) return await next(request, response);
      this.#logRefusal(refusal);
      return refuse(response, pathOf(request), refusal);
    } catch (error) {
      this.#options.logger.error({ err: error }, "request failed");
      if (response.headersSent) response.destroy();
      else refuse(response, pathOf(request), PROBLEMS.internal);
    }
  }

  #logRefusal(problem: Problem): void {
    const now = this.#clock.monotonic();
    if (now - this.#refusalLoggedAt < REFUSAL_LOG_MS) return;
    this.#refusalLoggedAt = now;
    this.#options.logger.warn({ code: problem.code }, "request to the web port refused");
  }
}

/** The answer to a request that could not be read; the same headers as every other answer. */
function unreadable(error: Error): string {
  const status = UNREADABLE_STATUS[systemCode(error) ?? ""] ?? 400;
  const headers = Object.entries(SECURITY_HEADERS).map(([name, value]) => `${name}: ${value}`);
  const end = ["Content-Length: 0", "Connection: close", "\r\n"];
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...headers, ...end].join("\r\n");
}

/** Codes of Node's HTTP parser that have a status of their own. */
const UNREADABLE_STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};
