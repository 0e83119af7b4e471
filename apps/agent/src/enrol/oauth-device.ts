import type { Clock } from "@devplat/base";
import { stringMember } from "@devplat/base/json-member";
import { OauthError } from "@devplat/oauth";
import type { Fields } from "@devplat/secret-store";
import type { EnrolmentEngine, EnrolmentSteps } from "./engine.ts";
import { failed, getJson } from "./http.ts";
import { halfOfLife, oauthFault, publicClient, refreshToken, tokenFields } from "./oauth-tokens.ts";

/** RFC 8628 section 3.5: what the interval grows by when the server says slow_down, and where it begins; seconds. */
const SLOW_DOWN_SECONDS = 5;
const DEFAULT_INTERVAL_SECONDS = 5;
/** Limits of the polling interval, in seconds. The server cannot exceed them. */
const MIN_INTERVAL_SECONDS = 1;
const MAX_INTERVAL_SECONDS = 60;
/** The longest that we wait for a code, in seconds. */
const MAX_EXPIRES_SECONDS = 3600;
/** Characters that a person can type (RFC 8628 section 6.1). None of them moves a terminal's cursor. */
const USER_CODE = /^[\x20-\x7e]{1,64}$/;

export interface DeviceEndpoints {
  readonly deviceUrl: string;
  readonly tokenUrl: string;
}

export interface DeviceFlow {
  /** Called when it is needed, because some servers publish their addresses. */
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
    const client = publicClient({ deviceUrl, tokenUrl, clientId });
    const parameters = {
      ...(scopes.length > 0 && { scope: scopes.join(" ") }),
      ...(audience !== undefined && { audience }),
    };
    const what = "the sign-in could not be started";
    const begun = await client.startDevice(parameters, signal).catch((error: unknown) => {
      throw oauthFault(error, deviceUrl, what);
    });
    const url = webAddress(begun.verificationUri);
    if (!USER_CODE.test(begun.userCode) || url === undefined) throw failed(`${what}: no reason given`);
    steps.visit({ url, code: begun.userCode });
    const end = this.#clock.now() + Math.min(begun.expiresIn, MAX_EXPIRES_SECONDS) * 1000;
    let interval = begun.interval ?? DEFAULT_INTERVAL_SECONDS;
    while (this.#clock.now() < end) {
      interval = Math.min(Math.max(interval, MIN_INTERVAL_SECONDS), MAX_INTERVAL_SECONDS);
      await this.#clock.sleep(interval * 1000, signal);
      const asked = client.deviceToken(begun.deviceCode, signal);
      const refusal = await asked.then(
        () => undefined,
        (error: unknown) => (error instanceof OauthError ? error : undefined),
      );
      if (refusal?.reason === "slow_down") interval = refusal.interval ?? interval + SLOW_DOWN_SECONDS;
      else if (refusal?.reason === "access_denied") throw failed("the request was declined");
      else if (refusal?.reason === "expired_token") break;
      else if (refusal?.reason !== "authorization_pending") return tokenFields(tokenUrl, asked, this.#clock);
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

/** Addresses that the server publishes (RFC 8414). They must be its own. */
export function announcedEndpoints(server: string): DeviceFlow["endpoints"] {
  const { origin } = new URL(server);
  return async (signal) => {
    const { body } = await getJson(`${origin}/.well-known/oauth-authorization-server`, signal);
    const [deviceUrl, tokenUrl] = ["device_authorization_endpoint", "token_endpoint"].map((name) =>
      URL.parse(stringMember(body, name) ?? ""),
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
