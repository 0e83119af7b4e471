import type { FieldValue } from "../contract.ts";
import { JsonError, SecretStoreError } from "../errors.ts";
import { isList, isMap, isNumber, parseJson } from "../json.ts";
import { ResponsePart } from "./response.ts";
import type { TransportResponse } from "./transport.ts";

/**
 * An answer that Vault did not give: the page of a proxy, a load balancer, a sign-in portal or another program. It says
 * nothing about what is stored, about the token or about the request, whatever its status is.
 */
export class ForeignAnswer extends SecretStoreError {
  /** HTTP status. */
  readonly status: number;

  constructor(action: string, status: number, reason: string) {
    super("unavailable", `${action}: the answer (HTTP ${status}) is not from a Vault server: ${reason}`, {
      remedy: "retry",
      hint: "Check store.address and the proxies between this host and the store: one of them answered instead.",
    });
    this.status = status;
  }
}

/**
 * The body of a success.
 * @param mayBeEmpty whether the endpoint may answer without a body (204)
 * @throws ForeignAnswer; SecretStoreError `invalid_response` for JSON that we do not take
 */
export function readSuccess(
  action: string,
  { status, text }: TransportResponse,
  mayBeEmpty: boolean,
): ResponsePart {
  if (text.trim() === "" && (status === 200 || status === 204)) {
    if (mayBeEmpty) return new ResponsePart(undefined, action);
    throw new ForeignAnswer(action, status, "it has no body");
  }
  if (status !== 200) throw new ForeignAnswer(action, status, "Vault does not use this status");
  const body = ownJson(action, status, text);
  if (!isEnvelope(body)) throw new ForeignAnswer(action, status, "it lacks request_id and lease_id");
  return new ResponsePart(body, action);
}

/** The body of `sys/leader`, which has no envelope. @throws ForeignAnswer */
export function readLeader(action: string, { status, text }: TransportResponse): ResponsePart {
  const body = ownJson(action, status, text);
  if (status === 200 && isMap(body) && typeof body.get("leader_address") === "string") {
    return new ResponsePart(body, action);
  }
  throw new ForeignAnswer(action, status, "it lacks leader_address");
}

/** A refusal as Vault words it. `words` may quote the request, so they are for matching and never for printing. */
export interface OwnRefusal {
  readonly words: readonly string[];
  /** Vault says that nothing is stored at the path of a read or a listing. */
  readonly isAbsent: boolean;
}

/** @throws ForeignAnswer; SecretStoreError `invalid_response` for JSON that we do not take */
export function readRefusal(
  action: string,
  { status, contentType = "", text }: TransportResponse,
  isRead: boolean,
): OwnRefusal {
  // Vault and OpenBao send each refusal with this type. A page must not look like a deletion.
  if (!/^application\/json *(?:;|$)/i.test(contentType)) {
    throw new ForeignAnswer(action, status, "its content type is not application/json");
  }
  const body = ownJson(action, status, text);
  if (status === 404 && isRead && isDeletedVersion(body)) return { words: [], isAbsent: true };
  const words = errorsOf(body);
  if (words === undefined) throw new ForeignAnswer(action, status, "it lacks the list of errors");
  // Other programs answer 404 with a list of errors and more; Vault adds nothing when nothing is stored.
  const isBare = isMap(body) && body.size === 1 && words.length === 0;
  if (status === 404 && words.length === 0 && !isBare) {
    throw new ForeignAnswer(action, status, "it holds more than an empty list of errors");
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
        `${action}: the answer is JSON that cannot be read without loss (line ${error.line}, column ${error.column})`,
        { hint: "A secret in it has a field twice, or is nested too deep. Write the secret again." },
      );
    }
    throw new ForeignAnswer(action, status, "it is not JSON");
  }
}

/** Vault's own answer that only our stricter reader refuses: it is about one secret, not about the store. */
function isLooseEnvelope(text: string): boolean {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null && "request_id" in body && "lease_id" in body;
  } catch {
    return false;
  }
}

/** Every successful answer with a body is one (`logical.HTTPResponse` in Vault and OpenBao). The ids may be empty. */
function isEnvelope(body: FieldValue): boolean {
  return (
    isMap(body) && typeof body.get("request_id") === "string" && typeof body.get("lease_id") === "string"
  );
}

/** KV version 2: the newest version was deleted or destroyed. The answer is 404 with the version's metadata. */
function isDeletedVersion(body: FieldValue): boolean {
  if (!isMap(body) || !isEnvelope(body)) return false;
  const data = body.get("data");
  if (!isMap(data) || data.get("data") !== null) return false;
  const metadata = data.get("metadata");
  return isMap(metadata) && isNumber(metadata.get("version"));
}

/** Vault's words; undefined if the body is not one of its errors. */
function errorsOf(body: FieldValue): readonly string[] | undefined {
  const errors = isMap(body) ? body.get("errors") : undefined;
  if (!isList(errors)) return undefined;
  const words = errors.filter((error) => typeof error === "string");
  return words.length === errors.length ? words : undefined;
}
