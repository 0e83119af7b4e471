import { setTimeout as sleep } from "node:timers/promises";
import { numberMember, stringMember } from "@devplat/base/json-member";
import { flagOf, printResult, textOf } from "@devplat/cli";
import { noteLine, printLine, visible } from "@devplat/base/terminal";
import { BRAND } from "../brand.ts";
import { SvcError } from "../errors.ts";
import type { RunCommand } from "./command.ts";
import { callApi, postForm, serviceAddress, serviceToken } from "./api-client.ts";
import { credentialsPath, forgetLogin, keepLogin, readCredentials } from "./credentials.ts";

const CLIENT_ID = `${BRAND.command}-cli`;
const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code";
/** Seconds; RFC 8628 section 3.5. */
const SLOW_DOWN_SECONDS = 5;

interface Caller {
  readonly session_id: string;
  readonly username: string;
  readonly role: string;
  readonly account: string;
}

/** Signs in by the device flow (RFC 8628): shows a code, which a person approves in any browser, and keeps the session. */
export const login: RunCommand = async ({ options }) => {
  const base = serviceAddress(textOf(options, "url"));
  const admin = flagOf(options, "admin");
  const begun = await postForm(new URL("/auth/device/code", base), {
    client_id: CLIENT_ID,
    ...(admin ? { scope: "admin" } : {}),
  });
  const [deviceCode, userCode, page] = ["device_code", "user_code", "verification_uri"].map((name) =>
    stringMember(begun, name),
  );
  if (deviceCode === undefined || userCode === undefined || page === undefined) {
    throw refused(base, begun);
  }
  noteLine(`Open ${page}`);
  noteLine(`and type the code ${userCode}`);
  if (admin) noteLine("and approve it with your admin rights");
  const end = Date.now() + secondsOf(begun, "expires_in", 900) * 1000;
  let interval = secondsOf(begun, "interval", 5);
  while (Date.now() < end) {
    await sleep(interval * 1000);
    const form = { grant_type: GRANT_TYPE, device_code: deviceCode, client_id: CLIENT_ID };
    const answer = await postForm(new URL("/auth/device/token", base), form);
    const token = stringMember(answer, "access_token");
    if (token !== undefined) {
      const username = stringMember(answer, "username") ?? "";
      const expiresAt = new Date(Date.now() + secondsOf(answer, "expires_in", 0) * 1000).toISOString();
      await keepLogin(base.origin, { token, username, expires_at: expiresAt });
      const done = { url: base.origin, username, expires_at: expiresAt };
      printResult(options, done, () =>
        printLine(`signed in to ${base.origin} as ${username}, until ${expiresAt}`),
      );
      return;
    }
    const error = stringMember(answer, "error");
    if (error === "slow_down") interval += SLOW_DOWN_SECONDS;
    else if (error === "access_denied") throw new SvcError("server_refused", "The sign-in was declined");
    else if (error !== "authorization_pending" && error !== "temporarily_unavailable") break;
  }
  throw new SvcError("server_refused", "The code was not approved in time", { hint: "Try again." });
};

/** Texts for the states of the account at the code host. */
const ACCOUNT_WORDS = (base: URL): Readonly<Record<string, string>> => ({
  connected: "connected",
  expired: `has to be connected again at ${base.origin}/ui`,
  none: "not connected",
});

/** Says who one is at the service. */
export const status: RunCommand = async ({ options }) => {
  const base = serviceAddress(textOf(options, "url"));
  const { token, source } = serviceToken(base);
  const target = { base, token };
  const { username, role, account } = await callApi<Caller>("GET", "/api/session", undefined, target);
  printResult(options, { url: base.origin, username, role, account, source }, () => {
    printLine(`${base.origin}: ${username} (${role}), by ${source}`);
    printLine(`code-host account: ${ACCOUNT_WORDS(base)[account] ?? account}`);
  });
};

/** Ends the session at the service, and forgets it here. What is over there already is only forgotten. */
export const logout: RunCommand = async ({ options }) => {
  const base = serviceAddress(textOf(options, "url"));
  const revokeTokens = flagOf(options, "revoke-tokens");
  const kept = readCredentials().services[base.origin];
  if (kept === undefined) {
    printResult(options, { url: base.origin, outcome: "not signed in" }, () =>
      printLine(`not signed in to ${base.origin}: ${credentialsPath()} has no session of it`),
    );
    return;
  }
  try {
    const target = { base, token: kept.token };
    if (revokeTokens) {
      const { session_id: id } = await callApi<Caller>("GET", "/api/session", undefined, target);
      await callApi("DELETE", `/api/sessions/${id}?tokens=revoke`, undefined, target);
    } else await callApi("POST", "/auth/logout", undefined, target);
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    // Forgotten, it could not be asked again to end what was made with it.
    if (revokeTokens) throw error;
    noteLine(`the session may live on at the service: ${error.message}`);
  }
  await forgetLogin(base.origin);
  printResult(options, { url: base.origin, outcome: "signed out" }, () =>
    printLine(`signed out of ${base.origin}`),
  );
};

/** A number of seconds that the service gives, else the fallback. */
function secondsOf(body: unknown, name: string, fallback: number): number {
  const value = numberMember(body, name) ?? fallback;
  return value >= 0 ? value : fallback;
}

function refused(base: URL, body: Readonly<Record<string, unknown>>): SvcError {
  const reason =
    stringMember(body, "error_description") ?? stringMember(body, "detail") ?? "no reason was given";
  return new SvcError("server_refused", `${base.host} does not begin a sign-in: ${visible(reason)}`);
}
