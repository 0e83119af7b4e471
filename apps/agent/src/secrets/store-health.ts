import { SecretStoreError, type SecretStoreErrorCode } from "@devplat/secret-store";
import { publicMessage } from "../errors.ts";

/** Errors after which no path can be read or written now. */
const FAULTS: ReadonlySet<SecretStoreErrorCode> = new Set([
  "unavailable",
  "sealed",
  "misconfigured",
  "corrupt",
  "insecure_files",
]);
/** Errors that the store itself has answered. The other ones are found before a request, or say nothing of the store. */
const ANSWERS: ReadonlySet<SecretStoreErrorCode> = new Set([
  "denied",
  "unauthenticated",
  "not_found",
  "version_conflict",
  "refused",
]);

/** Whether an error says that the store cannot serve any request now. */
export function isStoreFault({ code }: SecretStoreError): boolean {
  return FAULTS.has(code);
}

/** Whether an error keeps every secret from being read now. It is then no error of one secret or one rule. */
export function isStoreWide(error: unknown): boolean {
  return (
    error instanceof SecretStoreError &&
    ["unauthenticated", "sealed", "unavailable", "aborted", "misconfigured", "corrupt"].includes(error.code)
  );
}

/** Whether the secrets store answers, by the newest request that any part of this process has sent. */
export class StoreHealth {
  #fault: string | null | undefined;
  readonly #listeners = new Set<() => void>();

  /** Why the store cannot be used; null if it answers; undefined before the first request. */
  fault(): string | null | undefined {
    return this.#fault;
  }

  answered(): void {
    this.#set(null);
  }

  failed(error: SecretStoreError): void {
    if (isStoreFault(error)) this.#set(publicMessage(error));
    else if (ANSWERS.has(error.code)) this.#set(null);
  }

  /** Calls back whenever {@link StoreHealth.fault} is another one. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  #set(fault: string | null): void {
    if (fault === this.#fault) return;
    this.#fault = fault;
    for (const listener of this.#listeners) listener();
  }
}
