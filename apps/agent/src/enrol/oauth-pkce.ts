import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Secret, systemCode, type Clock } from "@devplat/base";
import type { Fields } from "@devplat/secret-store";
import { respondToCallback } from "../auth/login/callback-page.ts";
import { AgentError } from "../errors.ts";
import type { EnrolmentEngine, EnrolmentSteps } from "./engine.ts";
import { errorCode, failed } from "./http.ts";
import { halfOfLife, publicClient, refreshToken, tokenFields } from "./oauth-tokens.ts";

/** Bytes of verifier and state: 32 give the 43 characters that RFC 7636 section 4.1 recommends. */
const RANDOM_BYTES = 32;
const CALLBACK_PATH = "/callback";

export interface PkceFlow {
  readonly authorizeUrl: string;
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly audience?: string | undefined;
  /** 0 takes any. */
  readonly callbackPort: number;
}

/** The authorization code grant with PKCE (RFC 7636) and a loopback redirect (RFC 8252 section 7.3). */
export class OauthPkce implements EnrolmentEngine {
  readonly interactive = true;
  readonly #flow: PkceFlow;
  readonly #clock: Clock;

  constructor(flow: PkceFlow, clock: Clock) {
    this.#flow = flow;
    this.#clock = clock;
  }

  async run(steps: EnrolmentSteps, signal: AbortSignal): Promise<Fields> {
    const { authorizeUrl, tokenUrl, clientId, scopes, audience, callbackPort } = this.#flow;
    const verifier = randomBytes(RANDOM_BYTES).toString("base64url");
    const state = randomBytes(RANDOM_BYTES).toString("base64url");
    const callback = await Callback.open(callbackPort, state);
    try {
      const client = publicClient({ authorizeUrl, tokenUrl, clientId });
      const challenge = createHash("sha256").update(verifier).digest("base64url");
      const { redirectUri } = callback;
      const url = client.authorizationUrl(
        { state, challenge, redirectUri },
        {
          ...(scopes.length > 0 && { scope: scopes.join(" ") }),
          ...(audience !== undefined && { audience }),
        },
      );
      steps.visit({ url });
      const code = await callback.code(signal);
      const asked = client.exchangeCode({ code, verifier: new Secret(verifier), redirectUri }, signal);
      return await tokenFields(tokenUrl, asked, this.#clock);
    } finally {
      callback.close();
    }
  }

  refreshAt(held: Fields): number | undefined {
    return halfOfLife(held);
  }

  refresh(held: Fields, signal: AbortSignal): Promise<Fields> {
    return refreshToken(this.#flow.tokenUrl, this.#flow.clientId, held, this.#clock, signal);
  }
}

/** Waits on loopback for the browser that comes back with the state that we gave. */
class Callback {
  readonly redirectUri: string;
  readonly #server: Server;
  readonly #answer = Promise.withResolvers<string>();

  private constructor(server: Server, state: string) {
    const { port } = server.address() as AddressInfo;
    this.redirectUri = `http://127.0.0.1:${port}${CALLBACK_PATH}`;
    this.#server = server;
    this.#answer.promise.catch(() => undefined);
    server.on("request", (request, response) => {
      const url = URL.parse(request.url ?? "", this.redirectUri);
      if (url?.pathname !== CALLBACK_PATH || request.headers.host !== `127.0.0.1:${port}`) {
        return respondToCallback(response, 404, "Enrolment", "There is nothing here.");
      }
      // Anybody on this host may knock here; what is not ours must not end the flow that is.
      if (url.searchParams.get("state") !== state) {
        return respondToCallback(
          response,
          400,
          "Enrolment",
          "This answer belongs to no enrolment that is under way.",
        );
      }
      const code = url.searchParams.get("code");
      if (code === null) {
        const reason = errorCode(Object.fromEntries(url.searchParams));
        this.#answer.reject(failed(`the request was declined (${reason})`));
      } else this.#answer.resolve(code);
      respondToCallback(response, 200, "Enrolment", "You can close this page.");
    });
  }

  static async open(port: number, state: string): Promise<Callback> {
    const server = createServer();
    try {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
      return new Callback(server, state);
    } catch (error) {
      throw failed(`cannot wait for the browser on port ${port} (${systemCode(error) ?? "unknown error"})`);
    }
  }

  async code(signal: AbortSignal): Promise<string> {
    const stop = (): void =>
      this.#answer.reject(new AgentError("enrolment_cancelled", "the enrolment was ended"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    try {
      return await this.#answer.promise;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  close(): void {
    this.#server.close();
    this.#server.closeIdleConnections();
  }
}
