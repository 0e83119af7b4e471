import type { DocumentFormat, EditMap } from "@devplat/document-edit";
import type { FieldValue, SecretDocument } from "@devplat/secret-store";
import { AgentError } from "../../errors.ts";
import { stampOf } from "../../secrets/version-stamp.ts";
import type { CycleSecrets } from "./cycle-secrets.ts";
import { secretPaths, type Rule } from "../../config/sections/rule.ts";
import { formatOf } from "./target-format.ts";
import type { Printed } from "./printed-value.ts";
import type { RuleTemplate, TemplateContext } from "./rule-template.ts";

/** Rendered content of a rule, with its sources. */
export type Rendered =
  | {
      readonly kind: "content";
      readonly content: EditMap;
      /** Stamp of each secret that was read. */
      readonly inputs: Readonly<Record<string, string>>;
      /** Version of the secret, where there is just one. */
      readonly version: number | null;
      /** Time of the newest secret that was read, in milliseconds since the epoch. */
      readonly changedAt: number;
      /** Names of the environment variables that the template asked for. */
      readonly environment: readonly string[];
    }
  | { readonly kind: "missing"; readonly path: string };

/** Content of a file, with its sources. */
export type RenderedContent = Extract<Rendered, { kind: "content" }>;

/** A template that asks for more secrets than this by `secret` is a loop over something unbounded. */
const MAX_SECRETS_BY_FUNCTION = 100;

export interface RendererParts {
  readonly environment: NodeJS.ProcessEnv;
  readonly username: string;
  /** A keyed hash (see StateFile.hmac). */
  readonly hash: (text: string) => string;
}

/** Renders the content of a rule's file from secrets. Values cannot become structure. */
export class Renderer {
  readonly #parts: RendererParts;
  readonly #templates = new Map<string, RuleTemplate>();

  constructor(parts: RendererParts) {
    this.#parts = parts;
  }

  /** Equal as long as neither the rule nor an environment variable that it read has changed. */
  fingerprint(rule: Rule, environment: readonly string[]): string {
    const values = environment.map((name) => [name, this.#parts.environment[name] ?? null]);
    return this.#parts.hash(JSON.stringify([rule, values]));
  }

  /**
   * @throws AgentError `template_failed` | `value_injection`, DocumentEditError, SecretStoreError
   */
  async render(rule: Rule, secrets: CycleSecrets): Promise<Rendered> {
    const documents = new Map<string, SecretDocument>();
    for (const path of secretPaths(rule)) {
      const missing = { kind: "missing", path } as const;
      // The version is known already; asking for a value that is not there would be one more request in each cycle.
      if ((await secrets.stamp(path)) === undefined) return missing;
      const document = await secrets.read(path);
      if (document === undefined) return missing;
      documents.set(path, document);
    }
    const format = formatOf(rule.target);
    const { template } = rule.target;
    if (template === undefined) {
      const content = dataOf(rule, documents);
      const { refuseFields } = await import("./value-places.ts");
      for (const fields of [content, ...content.values()]) {
        if (fields instanceof Map) refuseFields(format, fields as EditMap);
      }
      return { kind: "content", content, ...madeFrom(documents), environment: [] };
    }
    return this.#renderTemplate(rule, await this.#template(rule, template), format, documents, secrets);
  }

  async #renderTemplate(
    rule: Rule,
    template: RuleTemplate,
    format: DocumentFormat,
    documents: Map<string, SecretDocument>,
    secrets: CycleSecrets,
  ): Promise<Rendered> {
    for (let asked = 0; asked <= MAX_SECRETS_BY_FUNCTION; asked++) {
      const environment = new Set<string>();
      const surroundings: TemplateContext = {
        data: dataOf(rule, documents),
        username: this.#parts.username,
        env: (name) => {
          environment.add(name);
          return this.#parts.environment[name];
        },
        secret: (path) => documents.get(path)?.fields,
      };
      const printed: Printed[] = [];
      const outcome = template.execute(surroundings, (text, interpolation) => {
        printed.push({ ...interpolation, text });
        return text;
      });
      if (outcome.kind === "text") {
        const content =
          format.name === "text"
            ? format.parse(outcome.text)
            : await this.#place(format, { text: outcome.text, printed }, template, surroundings);
        return {
          kind: "content",
          content,
          ...madeFrom(documents),
          environment: [...environment].toSorted(),
        };
      }
      const document = await secrets.read(outcome.path);
      if (document === undefined) return { kind: "missing", path: outcome.path };
      documents.set(outcome.path, document);
    }
    throw new AgentError(
      "template_failed",
      `the template asks for more than ${MAX_SECRETS_BY_FUNCTION} secrets`,
    );
  }

  /** Parses the output of the template, and puts the printed values in as values. Its module is loaded at first use. */
  async #place(
    format: DocumentFormat,
    rendered: { readonly text: string; readonly printed: readonly Printed[] },
    template: RuleTemplate,
    surroundings: TemplateContext,
  ): Promise<EditMap> {
    const { placeValues } = await import("./value-places.ts");
    const render = (replace: (index: number, text: string) => string): string => {
      let index = 0;
      const outcome = template.execute(surroundings, (text) => replace(index++, text));
      if (outcome.kind !== "text") throw new Error("a template asks for a secret that it has had");
      return outcome.text;
    };
    return placeValues(format, { ...rendered, render });
  }

  /** The engine is loaded with the first template: not every configuration has one. */
  async #template(rule: Rule, text: string): Promise<RuleTemplate> {
    let template = this.#templates.get(text);
    if (template === undefined) {
      const module = await import("./rule-template.ts");
      template = new module.RuleTemplate(rule.name, text);
      this.#templates.set(text, template);
    }
    return template;
  }
}

/** The fields at the root, or below the names of `keys`. */
function dataOf(rule: Rule, documents: ReadonlyMap<string, SecretDocument>): ReadonlyMap<string, FieldValue> {
  const fields = (path: string): ReadonlyMap<string, FieldValue> => documents.get(path)?.fields ?? new Map();
  if (rule.keys === undefined) return fields(rule.key ?? "");
  return new Map(Object.entries(rule.keys).map(([name, path]) => [name, fields(path)]));
}

/** Sources of the content. */
function madeFrom(documents: ReadonlyMap<string, SecretDocument>): {
  inputs: Record<string, string>;
  version: number | null;
  changedAt: number;
} {
  const [only] = documents.size === 1 ? documents.values() : [];
  const inputs = Object.fromEntries([...documents].map(([path, document]) => [path, stampOf(document)]));
  const changedAt = Math.max(0, ...documents.values().map(({ createdAt }) => createdAt));
  return { inputs, version: only?.version ?? null, changedAt };
}
