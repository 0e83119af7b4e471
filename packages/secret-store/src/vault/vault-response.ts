import type { FieldValue } from "../contract.ts";
import { JsonError, SecretStoreError } from "../errors.ts";
import { isList, isMap, isNumber, parseJson } from "../json.ts";
import { ResponsePart } from "./response.ts";
import type { TransportResponse } from "./transport.ts";

/**
 * Error for a response that is not from Vault: a page of a proxy, a load balancer, a sign-in portal or another program. It
 * has no information about the secrets, the token or the request, with any status.
 */
export class ForeignResponse extends SecretStoreError {
  /** HTTP status. */
  readonly status: number;

  constructor(action: string, status: number, reason: string) {
    super("unavailable", `${action}: the response (HTTP ${status}) is not from a Vault server: ${reason}`, {
      remedy: "retry",
      hint: "Check store.address and the proxies between this host and the store: one of them sent the response.",
    });
    this.status = status;
  }
}

/**
 * Reads the body of a success.
 * @param mayBeEmpty whether a response without a body (204) is valid
 * @throws ForeignResponse; SecretStoreError `invalid_response` for JSON that is not accepted
 */
export function readSuccess(
  action: string,
  { status, text }: TransportResponse,
  mayBeEmpty: boolean,
): ResponsePart {
  if (text.trim() === "" && (status === 200 || status === 204)) {
    if (mayBeEmpty) return new ResponsePart(undefined, action);
    throw new ForeignResponse(action, status, "it has no body");
  }
  if (status !== 200) throw new ForeignResponse(action, status, "Vault does not use this status");
  const body = ownJson(action, status, text);
  if (!isEnvelope(body)) throw new ForeignResponse(action, status, "it lacks request_id and lease_id");
  return new ResponsePart(body, action);
}

/** Reads the body of `sys/leader`, which has no envelope. @throws ForeignResponse */
export function readLeader(action: string, { status, text }: TransportResponse): ResponsePart {
  const body = ownJson(action, status, text);
  if (status === 200 && isMap(body) && typeof body.get("leader_address") === "string") {
    return new ResponsePart(body, action);
  }
  throw new ForeignResponse(action, status, "it lacks leader_address");
}

/** Content of a refusal. `words` may quote the request, so they are for matching and never for printing. */
export interface ParsedRefusal {
  readonly words: readonly string[];
  /** Whether Vault states that the path of a read or a listing does not exist. */
  readonly isAbsent: boolean;
}

/** Reads the body of a refusal. @throws ForeignResponse; SecretStoreError `invalid_response` for JSON that is not accepted */
export function readRefusal(
  action: string,
  { status, contentType = "", text }: TransportResponse,
  isRead: boolean,
): ParsedRefusal {
  // Vault and OpenBao send each refusal with this type. A page must not count as a deletion.
  if (!/^application\/json *(?:;|$)/i.test(contentType)) {
    throw new ForeignResponse(action, status, "its content type is not application/json");
  }
  const body = ownJson(action, status, text);
  if (status === 404 && isRead && isDeletedVersion(body)) return { words: [], isAbsent: true };
  const words = errorsOf(body);
  if (words === undefined) throw new ForeignResponse(action, status, "it lacks the list of errors");
  // Other programs send 404 with a list of errors and further members. Vault sends only an empty list for a missing path.
  const isBare = isMap(body) && body.size === 1 && words.length === 0;
  if (status === 404 && words.length === 0 && !isBare) {
    throw new ForeignResponse(action, status, "it holds more than an empty list of errors");
  }
  return { words, isAbsent: status === 404 && isRead && isBare };
}

function ownJson(action: string, status: number, text: string): FieldValue {
  try {
    return parseJson(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    if (isLooseEnvelope(text)) {
      throw new SecretStoreError(
        "invalid_response",
        `${action}: the response is JSON that cannot be read without loss (line ${error.line}, column ${error.column})`,
        { hint: "A secret in it has a field twice, or is nested too deep. Write the secret again." },
      );
    }
    throw new ForeignResponse(action, status, "it is not JSON");
  }
}

/** Whether a response that the strict parser refuses is Vault's own. The fault is then in one secret, not in the store. */
function isLooseEnvelope(text: string): boolean {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null && "request_id" in body && "lease_id" in body;
  } catch {
    return false;
  }
}

/** Whether the body has Vault's envelope, as every success with a body (`logical.HTTPResponse`). The ids may be empty. */
function isEnvelope(body: FieldValue): boolean {
  return (
    isMap(body) && typeof body.get("request_id") === "string" && typeof body.get("lease_id") === "string"
  );
}

/** Whether the newest version was deleted or destroyed. KV version 2 then sends 404 with the version's metadata. */
function isDeletedVersion(body: FieldValue): boolean {
  if (!isMap(body) || !isEnvelope(body)) return false;
  const data = body.get("data");
  if (!isMap(data) || data.get("data") !== null) return false;
  const metadata = data.get("metadata");
  return isMap(metadata) && isNumber(metadata.get("version"));
}

/** Vault's error texts, or undefined if the body is not one of its errors. */
function errorsOf(body: FieldValue): readonly string[] | undefined {
  const errors = isMap(body) ? body.get("errors") : undefined;
  if (!isList(errors)) return undefined;
  const words = errors.filter((error) => typeof error === "string");
  return words.length === errors.length ? words : undefined;
}
