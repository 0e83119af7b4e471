import type { Fields } from "@devplat/secret-store";
import type { EnrolmentConfig } from "../config/sections/enrolment-section.ts";
import type { EnrolmentEngine, EnrolmentSteps, FormField } from "./engine.ts";

type PromptConfig = Extract<EnrolmentConfig, { engine: "prompt" }>;

/** Asks for values that only the user knows. */
export class Prompt implements EnrolmentEngine {
  readonly interactive = true;
  readonly #config: PromptConfig;

  constructor(config: PromptConfig) {
    this.#config = config;
  }

  async run(steps: EnrolmentSteps): Promise<Fields> {
    const form = this.#config.fields.map(({ name, help, secret, optional, pattern }): FormField => {
      const shape = pattern === undefined ? undefined : new RegExp(`^(?:${pattern})$`, "u");
      return {
        name,
        help,
        secret,
        optional,
        confirm: false,
        fault: (value) => {
          if (value === "") return optional ? undefined : `${name} is needed`;
          return shape === undefined || shape.test(value)
            ? undefined
            : `${name} does not have the form that is asked for`;
        },
      };
    });
    const values = await steps.ask(this.#config.description, form);
    return new Map(
      [...values].flatMap(([name, value]) =>
        value.reveal() === "" ? [] : [[name, value.reveal()] as const],
      ),
    );
  }
}
