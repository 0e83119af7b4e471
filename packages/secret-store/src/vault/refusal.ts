import type { Remedy } from "@devplat/base";
import { SecretStoreError, type SecretStoreErrorCode } from "../errors.ts";
import type { ParsedRefusal } from "./vault-response.ts";

/** Error for a response of Vault other than success. */
export class VaultRefusal extends SecretStoreError {
  /** HTTP status. */
  readonly status: number;
  /** Whether an earlier try of the same call may have been carried out. */
  readonly uncertain: boolean;
  /** Vault's error texts. They may quote the request, so they are for matching and never for printing. */
  readonly #words: readonly string[];

  private constructor(
    code: SecretStoreErrorCode,
    message: string,
    details: { remedy: Remedy; hint?: string; status: number; uncertain: boolean; words: readonly string[] },
  ) {
    super(code, message, {
      remedy: details.remedy,
      ...(details.hint !== undefined && { hint: details.hint }),
    });
    this.status = details.status;
    this.uncertain = details.uncertain;
    this.#words = details.words;
  }

  static from(action: string, status: number, refusal: ParsedRefusal, uncertain: boolean): VaultRefusal {
    const {
      code,
      found,
      remedy = "final",
      hint,
    } = overLimit(status, refusal.words) ?? classify(status, refusal.isAbsent);
    const details = { remedy, status, uncertain, words: refusal.words, ...(hint !== undefined && { hint }) };
    return new VaultRefusal(code, `${action}: ${found}`, details);
  }

  /** Whether Vault's error texts contain this text. */
  mentions(text: string): boolean {
    return this.#words.some((words) => words.includes(text));
  }

  /** The same refusal with another code and message. */
  as(code: SecretStoreErrorCode, message: string, hint: string): VaultRefusal {
    const { status, uncertain, remedy } = this;
    return new VaultRefusal(code, message, { remedy, hint, status, uncertain, words: this.#words });
  }
}

interface Verdict {
  readonly code: SecretStoreErrorCode;
  readonly found: string;
  readonly remedy?: Remedy;
  readonly hint?: string;
}

const SPLIT = "Spread it over several secrets.";

/**
 * Vault's error texts for a request over a limit of its listener (1.20 and later, mostly with status 500) or of its
 * storage, and a hint for each. Such a response concerns only the request. The server works.
 */
const LIMITS: readonly (readonly [words: string, hint: string])[] = [
  [
    "exceeds allowed nesting depth",
    "It is nested too deep (max_json_depth, 300 by default). Keep the inner part as one text.",
  ],
  [
    "object exceeds allowed entry count",
    `It has an object with too many entries (max_json_object_entry_count, 10000 by default). ${SPLIT}`,
  ],
  [
    "array exceeds allowed element count",
    `It has a list with too many items (max_json_array_element_count, 10000 by default). ${SPLIT}`,
  ],
  ["exceeds allowed token count", `It has too many values in all (500000 by default). ${SPLIT}`],
  [
    "value exceeds allowed length",
    `It has a text or number that is too long (max_json_string_value_length). ${SPLIT}`,
  ],
  ["request body too large", `It is too large (max_request_size). ${SPLIT}`],
  ["value being too large", `It is too large for the store's storage (max_entry_size). ${SPLIT}`],
];

function overLimit(status: number, words: readonly string[]): Verdict | undefined {
  const limit = LIMITS.find(([part]) => words.some((text) => text.includes(part)));
  if (limit === undefined && status !== 413) return undefined;
  return {
    code: "too_large",
    found: "the request is over a limit of the store",
    hint: limit?.[1] ?? `It is too large for the store. ${SPLIT}`,
  };
}

function classify(status: number, isAbsent: boolean): Verdict {
  if (status === 403) {
    return {
      code: "denied",
      found: "the store denies it to this token",
      hint: "The token's policies must allow it.",
    };
  }
  if (isAbsent) return { code: "not_found", found: "it does not exist" };
  if (status === 404) {
    return {
      code: "misconfigured",
      found: "the store has no such mount or route",
      hint: "Check store.kv_mount, store.auth_mount and store.namespace.",
    };
  }
  if (status === 429)
    return { code: "unavailable", found: "the store limits the rate of requests (429)", remedy: "retry" };
  if (status >= 500) return { code: "unavailable", found: `the store answered ${status}`, remedy: "retry" };
  return { code: "refused", found: `the store refused it (${status})` };
}
