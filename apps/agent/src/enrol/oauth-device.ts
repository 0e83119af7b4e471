import type { Clock } from "@devplat/base";
import { textOf } from "@devplat/base/json-member";
import type { Fields } from "@devplat/secret-store";
import type { EnrolmentEngine, EnrolmentSteps } from "./engine.ts";
import { errorCode, failed, getJson, secondsOf, postForm } from "./http.ts";
import { halfOfLife, refreshToken, tokenFields } from "./oauth-tokens.ts";

/** RFC 8628 section 3.5: what the interval grows by when the server says slow_down, and where it begins; seconds. */
const SLOW_DOWN_SECONDS = 5;
const DEFAULT_INTERVAL_SECONDS = 5;
/** How often we ask whatever the server says: not in a loop without a pause, and before the user thinks it hangs; seconds. */
const MIN_INTERVAL_SECONDS = 1;
const MAX_INTERVAL_SECONDS = 60;
/** A code without a stated end, and the longest that we wait for one, in seconds. */
const DEFAULT_EXPIRES_SECONDS = 900;
const MAX_EXPIRES_SECONDS = 3600;
/** What a person can type (RFC 8628 section 6.1), and nothing that moves a terminal's cursor. */
const USER_CODE = /^[\x20-\x7e]{1,64}$/;
const GRANT = "urn:ietf:params:oauth:grant-type:device_code";

export interface DeviceEndpoints {
  readonly deviceUrl: string;
  readonly tokenUrl: string;
}

export interface DeviceFlow {
  /** Asked when it is needed: some servers tell their addresses themselves. */
  readonly endpoints: (signal: AbortSignal) => Promise<DeviceEndpoints>;
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly audience?: string | undefined;
}

/** The device authorization grant (RFC 8628): the user types a code on a page, on any device. */
export class OauthDevice implements EnrolmentEngine {
  readonly interactive = true;
  readonly #flow: DeviceFlow;
  readonly #clock: Clock;

  constructor(flow: DeviceFlow, clock: Clock) {
    this.#flow = flow;
    this.#clock = clock;
  }

  async run(steps: EnrolmentSteps, signal: AbortSignal): Promise<Fields> {
    const { clientId, scopes, audience } = this.#flow;
    const { deviceUrl, tokenUrl } = await this.#flow.endpoints(signal);
    const { status, body } = await postForm(
      deviceUrl,
      {
        client_id: clientId,
        ...(scopes.length > 0 && { scope: scopes.join(" ") }),
        ...(audience !== undefined && { audience }),
      },
      signal,
    );
    const deviceCode = textOf(body, "device_code");
    const code = textOf(body, "user_code");
    const url = webAddress(textOf(body, "verification_uri") ?? textOf(body, "verification_url"));
    if (deviceCode === undefined || code === undefined || !USER_CODE.test(code) || url === undefined) {
      throw failed(`the sign-in could not be started: ${errorCode(body)} (status ${status})`);
    }
    steps.visit({ url, code });
    const expires = Math.min(secondsOf(body, "expires_in", DEFAULT_EXPIRES_SECONDS), MAX_EXPIRES_SECONDS);
    const end = this.#clock.now() + expires * 1000;
    let interval = secondsOf(body, "interval", DEFAULT_INTERVAL_SECONDS);
    while (this.#clock.now() < end) {
      interval = Math.min(Math.max(interval, MIN_INTERVAL_SECONDS), MAX_INTERVAL_SECONDS);
      await this.#clock.sleep(interval * 1000, signal);
      const answer = await postForm(
        tokenUrl,
        { grant_type: GRANT, device_code: deviceCode, client_id: clientId },
        signal,
      );
      const error = textOf(answer.body, "error");
      if (error === "slow_down") interval = secondsOf(answer.body, "interval", interval + SLOW_DOWN_SECONDS);
      else if (error === "access_denied") throw failed("the request was declined");
      else if (error === "expired_token") break;
      else if (error !== "authorization_pending") return tokenFields(answer, this.#clock);
    }
    throw failed("the code was not used in time");
  }

  refreshAt(held: Fields): number | undefined {
    return halfOfLife(held);
  }

  async refresh(held: Fields, signal: AbortSignal): Promise<Fields> {
    const { tokenUrl } = await this.#flow.endpoints(signal);
    return refreshToken(tokenUrl, this.#flow.clientId, held, this.#clock, signal);
  }
}

/** Addresses below a server of GitHub's kind. */
export function githubEndpoints(host: string): DeviceFlow["endpoints"] {
  const base = host.replace(/\/$/, "");
  const endpoints = { deviceUrl: `${base}/login/device/code`, tokenUrl: `${base}/login/oauth/access_token` };
  return () => Promise.resolve(endpoints);
}

/** Addresses that the server tells (RFC 8414), which must be its own. */
export function announcedEndpoints(server: string): DeviceFlow["endpoints"] {
  const { origin } = new URL(server);
  return async (signal) => {
    const { body } = await getJson(`${origin}/.well-known/oauth-authorization-server`, signal);
    const [deviceUrl, tokenUrl] = ["device_authorization_endpoint", "token_endpoint"].map((name) =>
      URL.parse(textOf(body, name) ?? ""),
    );
    if (deviceUrl?.origin !== origin || tokenUrl?.origin !== origin) {
      throw failed(`${new URL(server).host} does not tell where its device sign-in is`);
    }
    return { deviceUrl: deviceUrl.href, tokenUrl: tokenUrl.href };
  };
}

/** An address that a browser may be sent to; undefined for any other. */
function webAddress(text: string | undefined): string | undefined {
  const url = URL.parse(text ?? "");
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
  return isWeb && url.username === "" && url.password === "" ? url.href : undefined;
}
