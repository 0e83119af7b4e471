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
/** Errors in a response of the store. Other errors come before a request, or say nothing about the store. */
const RESPONSES: ReadonlySet<SecretStoreErrorCode> = new Set([
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

/** Whether the secrets store responds, by the newest request that any part of this process has sent. */
export class StoreHealth {
  #fault: string | null | undefined;
  readonly #listeners = new Set<() => void>();

  /** Why the store cannot be used. Null if it responds. Undefined before the first request. */
  fault(): string | null | undefined {
    return this.#fault;
  }

  responded(): void {
    this.#set(null);
  }

  failed(error: SecretStoreError): void {
    if (isStoreFault(error)) this.#set(publicMessage(error));
    else if (RESPONSES.has(error.code)) this.#set(null);
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
