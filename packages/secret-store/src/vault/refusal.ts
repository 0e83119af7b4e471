import type { Remedy } from "@devplat/base";
import { SecretStoreError, type SecretStoreErrorCode } from "../errors.ts";
import type { OwnRefusal } from "./own-answer.ts";

/** An answer of Vault other than success. */
export class VaultRefusal extends SecretStoreError {
  /** HTTP status. */
  readonly status: number;
  /** An earlier try of the same call may have been carried out. */
  readonly uncertain: boolean;
  /** Vault's own words. They may quote the request, so they are for matching and never for printing. */
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

  static from(action: string, status: number, refusal: OwnRefusal, uncertain: boolean): VaultRefusal {
    const { code, found, remedy = "final", hint } = classify(status, refusal.isAbsent);
    const details = { remedy, status, uncertain, words: refusal.words, ...(hint !== undefined && { hint }) };
    return new VaultRefusal(code, `${action}: ${found}`, details);
  }

  /** Whether Vault's own words hold this text. */
  mentions(text: string): boolean {
    return this.#words.some((words) => words.includes(text));
  }

  /** The same refusal after a closer look. */
  as(code: SecretStoreErrorCode, message: string, hint: string): VaultRefusal {
    const { status, uncertain, remedy } = this;
    return new VaultRefusal(code, message, { remedy, hint, status, uncertain, words: this.#words });
  }
}

function classify(
  status: number,
  isAbsent: boolean,
): { code: SecretStoreErrorCode; found: string; remedy?: Remedy; hint?: string } {
  if (status === 403) {
    return {
      code: "denied",
      found: "the store denies it to this token",
      hint: "The token's policies must allow it.",
    };
  }
  if (isAbsent) return { code: "not_found", found: "nothing is there" };
  if (status === 404) {
    return {
      code: "misconfigured",
      found: "the store knows no such mount or route",
      hint: "Check store.kv_mount, store.auth_mount and store.namespace.",
    };
  }
  if (status === 429)
    return { code: "unavailable", found: "the store asks to slow down (429)", remedy: "retry" };
  if (status >= 500) return { code: "unavailable", found: `the store answered ${status}`, remedy: "retry" };
  return { code: "refused", found: `the store refused it (${status})` };
}
