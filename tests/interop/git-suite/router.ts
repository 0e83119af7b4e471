import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";

/**
 * First words of the repositories that git's tests name with more than one word before the name. This service knows an owner and a
 * name only, so these words are joined here. {@link PARTING_RULES} part them.
 */
const JOINED = ["auth", "auth-push", "auth-fetch", "http_429", "error_git_upload_pack"];
const MANY_WORDS = new RegExp(`^/((?:${JOINED.join("|")})(?:/[\\w-]+){1,2})/(?=[\\w-]+\\.git/)`);
const JOINT = "-in-";
/** Lines of Apache's configuration. */
export const PARTING_RULES = `RewriteRule ^/([^/]+)${JOINT}([^/]+)${JOINT}([^/]+)/(.*)$ /$1/$2/$3/$4 [PT]
RewriteRule ^/([^/]+)${JOINT}([^/]+)/(.*)$ /$1/$2/$3 [PT]
`;

/** Paths of repositories: an owner, a name, and something of the protocols. */
const REPOSITORY =
  /^\/([\w-]+)\/([\w.-]+?)(?:\.git)?\/(?:info\/refs|git-upload-pack|git-receive-pack|HEAD|objects\/)/;

/**
 * The address that git's tests know. Requests of repositories go to `svc`, which has each repository in its list before its
 * first request. All others go to Apache: bundles, files and redirects, which are not addresses of a repository.
 */
export class Router {
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  readonly #apachePort: number;
  readonly #listed = new Map<string, Promise<void>>();
  /** Set after the start: `svc` has to know this router's address when it starts. */
  svc: { readonly port: number; list(owner: string, name: string): Promise<void> } | undefined;

  private constructor(apachePort: number) {
    this.#apachePort = apachePort;
  }

  static async start(apachePort: number): Promise<Router> {
    const router = new Router(apachePort);
    router.#server.listen(0, "127.0.0.1");
    await once(router.#server, "listening");
    return router;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const path = joined(request.url ?? "");
      const [, owner, name] = REPOSITORY.exec(path) ?? [];
      const { svc } = this;
      if (svc === undefined || owner === undefined || name === undefined) {
        await relayed(request, response, this.#apachePort, request.url ?? "");
        return;
      }
      const key = `${owner}/${name}`;
      if (!this.#listed.has(key)) this.#listed.set(key, svc.list(owner, name));
      await this.#listed.get(key);
      await relayed(request, response, svc.port, path);
    } catch {
      // As a connection ends that a server cuts.
      response.destroy();
    }
  }
}

function joined(path: string): string {
  return path.replace(MANY_WORDS, (_, words: string) => `/${words.replaceAll("/", JOINT)}/`);
}

async function relayed(
  request: IncomingMessage,
  response: ServerResponse,
  port: number,
  path: string,
): Promise<void> {
  const outgoing = httpRequest({
    host: "127.0.0.1",
    port,
    path,
    method: request.method ?? "GET",
    headers: request.headers,
    agent: false,
  });
  const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
  const sent = pipeline(request, outgoing);
  sent.catch(() => undefined);
  const [incoming] = await answered;
  response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, incoming.rawHeaders);
  await pipeline(incoming, response);
}
