import { randomUUID } from "node:crypto";
import { Secret, type Clock } from "@devplat/base";
import { numberMember, stringMember } from "@devplat/base/json-member";
import type { OauthTokens } from "@devplat/oauth";
import type { Fields } from "@devplat/secret-store";
import type { EnrolmentEngine, EnrolmentSteps } from "./engine.ts";
import { failed, getJson, postJson, type JsonResponse } from "./http.ts";
import { fieldsOf, halfOfLife, refreshToken } from "./oauth-tokens.ts";

/** Time between looks, and the whole time for it, in milliseconds, as in the vendor's own command line. */
const INTERVAL_MS = 3000;
const LIMIT_MS = 5 * 60_000;
const CLIENT = "agent";

/** The web login of the JFrog platform: the user approves a session of this program in the browser. */
export class Jfrog implements EnrolmentEngine {
  readonly interactive = true;
  readonly #url: string;
  readonly #clock: Clock;

  constructor(url: string, clock: Clock) {
    this.#url = url.replace(/\/$/, "");
    this.#clock = clock;
  }

  async run(steps: EnrolmentSteps, signal: AbortSignal): Promise<Fields> {
    const session = randomUUID();
    const base = `${this.#url}/access/api/v2/authentication/jfrog_client_login`;
    const { status } = await postJson(`${base}/request`, { session }, signal);
    if (status >= 300) throw failed(`the sign-in could not be started (status ${status})`);
    // The page shows the last four characters, and the user compares them.
    const code = session.slice(-4);
    steps.visit({
      url: `${this.#url}/ui/login?jfClientSession=${session}&jfClientName=${CLIENT}&jfClientCode=1`,
      code,
    });
    const end = this.#clock.now() + LIMIT_MS;
    while (this.#clock.now() < end) {
      await this.#clock.sleep(INTERVAL_MS, signal);
      const response = await getJson(`${base}/token/${session}`, signal);
      if (response.status === 200) return fieldsOf(tokensOf(response), this.#clock);
      if (response.status !== 400) throw failed(`the sign-in was refused (status ${response.status})`);
    }
    throw failed("the sign-in was not approved in time");
  }

  refreshAt(held: Fields): number | undefined {
    return halfOfLife(held);
  }

  refresh(held: Fields, signal: AbortSignal): Promise<Fields> {
    return refreshToken(`${this.#url}/access/api/v1/tokens`, CLIENT, held, this.#clock, signal);
  }
}

/** The tokens of a login, in the members of OAuth. @throws AgentError `enrolment_failed` */
function tokensOf({ body }: JsonResponse): OauthTokens {
  const accessToken = stringMember(body, "access_token");
  if (accessToken === undefined) throw failed("the sign-in was approved, but gave no token");
  const renewal = stringMember(body, "refresh_token");
  return {
    accessToken: new Secret(accessToken),
    refreshToken: renewal === undefined ? undefined : new Secret(renewal),
    tokenType: "bearer",
    scope: stringMember(body, "scope"),
    expiresIn: numberMember(body, "expires_in"),
  };
}
