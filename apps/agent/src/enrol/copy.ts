import { TemplateError } from "@devplat/go-template";
import { SecretStoreError, type Fields, type SecretStore } from "@devplat/secret-store";
import { RuleTemplate } from "../sync/content/rule-template.ts";
import type { EnrolmentEngine, EnrolmentSteps } from "./engine.ts";
import { failed } from "./http.ts";

export interface CopyOptions {
  /** Path of the secret to mirror. */
  readonly from: string;
  /** Field name → template over the source's fields; undefined copies all fields. */
  readonly fields: Readonly<Record<string, string>> | undefined;
  readonly username: string;
}

/** Mirrors a stored secret without the user, and follows its changes. */
export class Copy implements EnrolmentEngine {
  readonly interactive = false;
  readonly mirrors = true;
  readonly #store: SecretStore;
  readonly #options: CopyOptions;

  constructor(store: SecretStore, options: CopyOptions) {
    this.#store = store;
    this.#options = options;
  }

  async run(_steps: EnrolmentSteps, signal: AbortSignal): Promise<Fields> {
    const { from, fields, username } = this.#options;
    let source: Fields;
    try {
      ({ fields: source } = await this.#store.read(from, { signal }));
    } catch (error) {
      if (!(error instanceof SecretStoreError) || error.code !== "not_found") throw error;
      throw failed(`nothing is stored under ${from}`, true);
    }
    if (fields === undefined) return source;
    const surroundings = { data: source, username, env: () => undefined, secret: () => undefined };
    return new Map(
      Object.entries(fields).map(([name, text]) => {
        try {
          const outcome = new RuleTemplate(name, text).execute(surroundings, (value) => value);
          if (outcome.kind === "needs") throw failed(`field ${name}: a copy reads its own source only`);
          return [name, outcome.text];
        } catch (error) {
          if (error instanceof TemplateError) throw failed(`field ${name}: ${error.message}`);
          throw error;
        }
      }),
    );
  }
}
