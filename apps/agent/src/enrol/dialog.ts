import { Secret } from "@devplat/base";
import { AgentError } from "../errors.ts";
import type { EnrolmentSteps, FormField } from "./engine.ts";

/** Time limit for the input of a user, in milliseconds. After it the enrolment starts again. */
const ANSWER_LIMIT_MS = 15 * 60_000;

/** The next step of the user while an enrolment runs. */
export interface EnrolmentPrompt {
  readonly visit?: { readonly url: string; readonly code?: string };
  readonly form?: { readonly title: string; readonly fields: readonly FormField[] };
  /** The enrolment has failed because the store did not take the credential. `EnrolmentRunner.retry` stores it. */
  readonly unsaved?: true;
}

/** Connects an engine that asks for input with a user in a page or at a terminal. */
export class EnrolmentDialog {
  readonly #onChange: () => void;
  #prompt: EnrolmentPrompt = {};
  #resolve: ((values: ReadonlyMap<string, Secret>) => void) | undefined;

  /** @param onChange called after each change of {@link prompt} by the engine */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get prompt(): EnrolmentPrompt {
    return this.#prompt;
  }

  /** Replaces the prompt, and takes no more answers to the one before. Does not call `onChange`. */
  reset(prompt: EnrolmentPrompt): void {
    this.#prompt = prompt;
    this.#resolve = undefined;
  }

  /**
   * Passes the values that the form asks for.
   * @returns faults by field, empty if the values are accepted; undefined if the engine does not wait for input
   */
  answer(values: ReadonlyMap<string, Secret>): ReadonlyMap<string, string> | undefined {
    const { form } = this.#prompt;
    if (form === undefined || this.#resolve === undefined) return undefined;
    const faults = new Map<string, string>();
    const taken = new Map<string, Secret>();
    for (const { name, fault } of form.fields) {
      const value = values.get(name) ?? new Secret("");
      const wrong = fault(value.reveal());
      if (wrong !== undefined) faults.set(name, wrong);
      taken.set(name, value);
    }
    if (faults.size === 0) this.#resolve(taken);
    return faults;
  }

  /** The engine's side. @param signal ends a question that waits for its answer */
  steps(signal: AbortSignal): EnrolmentSteps {
    return {
      visit: (visit) => this.#show({ visit }, undefined),
      ask: async (title, fields) => {
        const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, Secret>>();
        const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_LIMIT_MS)]);
        const give = (): void =>
          reject(new AgentError("enrolment_cancelled", "the user did not answer in time"));
        if (limit.aborted) give();
        else limit.addEventListener("abort", give, { once: true });
        this.#show({ form: { title, fields } }, resolve);
        try {
          return await promise;
        } finally {
          this.#show({}, undefined);
        }
      },
    };
  }

  #show(prompt: EnrolmentPrompt, resolve: ((values: ReadonlyMap<string, Secret>) => void) | undefined): void {
    this.#prompt = prompt;
    this.#resolve = resolve;
    this.#onChange();
  }
}
