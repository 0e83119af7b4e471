import type { Secret } from "@devplat/base";
import type { Fields } from "@devplat/secret-store";

/** One value that an engine asks for. */
export interface FormField {
  readonly name: string;
  readonly help: string;
  /** The typed characters are not shown. */
  readonly secret: boolean;
  readonly optional: boolean;
  /** Typed twice, because a typing error would not be seen. */
  readonly confirm: boolean;
  /** Gives the fault of a value, or undefined. */
  readonly fault: (value: string) => string | undefined;
}

/** Steps of the user while an engine runs, in a terminal or a web page. */
export interface EnrolmentSteps {
  /** The user has to open this address, and type the code there if there is one. */
  visit(step: { readonly url: string; readonly code?: string }): void;
  /** Rejects when the user gives up. The values have passed each field's check. */
  ask(title: string, fields: readonly FormField[]): Promise<ReadonlyMap<string, Secret>>;
}

/**
 * Gets one kind of credential. An engine knows no store: it gives fields, and the runner merges them into the secret.
 *
 * Every method throws AgentError `enrolment_failed` (with a sentence for the user) or `enrolment_cancelled`; other
 * AppErrors of what it uses pass through.
 */
export interface EnrolmentEngine {
  /** Whether it needs the user. Another engine runs as soon as the credential is missing. */
  readonly interactive: boolean;
  /** It mirrors another secret: {@link EnrolmentEngine.run} is called again and again. Default false. */
  readonly mirrors?: boolean;
  run(steps: EnrolmentSteps, signal: AbortSignal): Promise<Fields>;
  /** When the held fields should be renewed, milliseconds since the epoch; undefined for never. */
  refreshAt?(held: Fields): number | undefined;
  /** New fields by what is held, without the user. */
  refresh?(held: Fields, signal: AbortSignal): Promise<Fields>;
}
