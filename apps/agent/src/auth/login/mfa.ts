import { Secret } from "@devplat/base";
import { SecretStoreError, type ResponsePart, type VaultClient } from "@devplat/secret-store";
import { AgentError } from "../../errors.ts";
import { LOGIN_LIMIT_MS, type LoginSteps } from "./login-flow.ts";

/** One way to satisfy a constraint (Vault's login MFA, `mfa_requirement`). */
interface MfaMethod {
  readonly id: string;
  readonly type: string;
  readonly usesPasscode: boolean;
}

/**
 * The token of a login's response, after the second factor if the store asks for one (`sys/mfa/validate`). A wrong
 * passcode may be given again until the time is over; the store may lock the method before that.
 *
 * @throws AgentError `login_failed` | `login_cancelled`
 */
export async function finishLogin(
  client: VaultClient,
  response: ResponsePart,
  steps: LoginSteps,
): Promise<Secret> {
  const token = tokenOf(response);
  if (token !== undefined) return token;
  const requirement = response.get("auth").get("mfa_requirement");
  const requestId = requirement.get("mfa_request_id").or("", (part) => part.string());
  const methods = methodsOf(requirement.get("mfa_constraints"));
  if (requestId === "" || methods.length === 0) {
    throw new AgentError("login_failed", "the store accepted the login and gave no token");
  }
  return validate(client, requestId, methods, steps);
}

async function validate(
  client: VaultClient,
  requestId: string,
  methods: readonly MfaMethod[],
  steps: LoginSteps,
): Promise<Secret> {
  const asked = methods.filter((method) => method.usesPasscode);
  const pushed = methods.filter((method) => !method.usesPasscode).map(({ type }) => type);
  for (let refused = false; ; refused = true) {
    const payload: Record<string, string[]> = Object.fromEntries(methods.map(({ id }) => [id, []]));
    for (const { id, type } of asked) {
      const code = await steps.passcode(type, refused);
      payload[id] = [code.reveal().replaceAll(/\s/g, "")];
    }
    steps.show(pushed.length > 0 ? { kind: "waiting_push", methods: pushed } : { kind: "starting" });
    try {
      const response = await client.request({
        method: "POST",
        path: "sys/mfa/validate",
        body: JSON.stringify({ mfa_request_id: requestId, mfa_payload: payload }),
        token: null,
        timeoutMs: LOGIN_LIMIT_MS,
        signal: steps.signal,
      });
      const token = tokenOf(response);
      if (token !== undefined) return token;
      throw new AgentError("login_failed", "the store accepted the second factor and gave no token");
    } catch (error) {
      if (!(error instanceof SecretStoreError && error.code === "denied")) throw refusedRequest(error);
      if (asked.length === 0) throw new AgentError("login_failed", "the second factor was refused");
    }
  }
}

/** A 400 here means that the store no longer knows the login. */
function refusedRequest(error: unknown): unknown {
  if (!(error instanceof SecretStoreError && error.code === "refused")) return error;
  return new AgentError("login_failed", "the store no longer waits for the second factor", {
    hint: "Log in again.",
  });
}

function tokenOf(response: ResponsePart): Secret | undefined {
  const token = response
    .get("auth")
    .get("client_token")
    .or("", (part) => part.string());
  return token === "" ? undefined : new Secret(token);
}

/** One method for each constraint: the first that it lists. */
function methodsOf(constraints: ResponsePart): MfaMethod[] {
  const names = constraints.or<string[]>([], (part) => [...part.map().keys()]);
  const chosen = new Map<string, MfaMethod>();
  for (const name of names) {
    const [first] = constraints.get(name).get("any").list();
    if (first === undefined) continue;
    const id = first.get("id").string();
    chosen.set(id, {
      id,
      type: first.get("type").string(),
      usesPasscode: first.get("uses_passcode").or(false, (part) => part.boolean()),
    });
  }
  return [...chosen.values()];
}
