import { messageOf, type Secret } from "@devplat/base";
import type { HttpClient, HttpResponse } from "@devplat/http-client";
import { BRAND } from "../../brand.ts";
import type { CodeHost } from "../../code-host/code-host.ts";
import { SvcError } from "../../errors.ts";

/** Milliseconds for the complete request: a person waits for the page. */
const TIMEOUT_MS = 10_000;
const ADVERTISEMENT = "application/x-git-upload-pack-advertisement";

/** Asks whether a repository can be read with a credential. */
export interface RepositoryProbe {
  /**
   * - `readable`: the code host gave its refs
   * - `refused`: it responded with 401, 403 or 404
   * - `moved`: it redirects to another address
   *
   * @throws SvcError `host_unreachable` for everything else
   */
  ask(owner: string, name: string, credential: Secret | undefined): Promise<"readable" | "refused" | "moved">;
}

/** Sends the request that git sends, `GET info/refs`, which any smart-HTTP server can answer. */
export class GitRepositoryProbe implements RepositoryProbe {
  readonly #host: Pick<CodeHost, "url" | "gitAuthorization">;
  readonly #http: HttpClient;

  constructor(host: Pick<CodeHost, "url" | "gitAuthorization">, http: HttpClient) {
    this.#host = host;
    this.#http = http;
  }

  async ask(
    owner: string,
    name: string,
    credential: Secret | undefined,
  ): Promise<"readable" | "refused" | "moved"> {
    const target = new URL(`${this.#host.url}/${owner}/${name}.git/info/refs?service=git-upload-pack`);
    const { host } = target;
    const headers: Record<string, string> = {
      "user-agent": BRAND.command,
      "git-protocol": "version=2",
      "accept-encoding": "identity",
    };
    if (credential !== undefined) headers["authorization"] = this.#host.gitAuthorization(credential).reveal();
    let response: HttpResponse;
    try {
      response = await this.#http.request(target, {
        headers,
        timeoutMs: TIMEOUT_MS,
        maxBytes: "head only",
      });
    } catch (error) {
      throw unreachable(`The code host ${host} could not be asked: ${messageOf(error)}`, error);
    }
    const { status } = response;
    const type = response.headers["content-type"] ?? "";
    if (status === 200 && type.startsWith(ADVERTISEMENT)) return "readable";
    if (status === 401 || status === 403 || status === 404) return "refused";
    if (status >= 300 && status < 400) return "moved";
    throw unreachable(`The code host ${host} answered with status ${status}`);
  }
}

function unreachable(message: string, cause?: unknown): SvcError {
  return new SvcError("host_unreachable", message, {
    remedy: "retry",
    cause,
    hint: "Try again, or leave the check out (--no-check for tokens; in the API ?check=false).",
  });
}
