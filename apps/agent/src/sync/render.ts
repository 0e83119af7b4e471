import { DocumentEditError, sameShape, type DocumentFormat, type EditMap } from "@devplat/document-edit";
import type { FieldValue, SecretDocument } from "@devplat/secret-store";
import { AgentError } from "../errors.ts";
import { stampOf, type CycleSecrets } from "./cycle-secrets.ts";
import { secretPaths, type Rule } from "../config/rule.ts";
import { findInterference, type Printed, type Rerender } from "./interference.ts";
import { formatOf } from "./target-format.ts";
import type { Interpolation, RuleTemplate, TemplateSurroundings } from "./rule-template.ts";

/** What a rule's content is made from and what came of it. */
export type Rendered =
  | {
      readonly kind: "content";
      readonly content: EditMap;
      /** Stamp of each secret that was read. */
      readonly inputs: Readonly<Record<string, string>>;
      /** Version of the secret, where there is just one. */
      readonly version: number | null;
      /** Names of the environment variables that the template asked for. */
      readonly environment: readonly string[];
    }
  | { readonly kind: "missing"; readonly path: string };

/** Formats of lines: a value with a line break would add settings of its own. */
const LINE_FORMATS: ReadonlySet<string> = new Set(["ini", "netrc", "ssh_config", "dotenv", "properties"]);
/** Formats with structure: a value could add keys of its own. */
const STRUCTURED_FORMATS: ReadonlySet<string> = new Set(["yaml", "json", "toml"]);
const LINE_BREAK_OR_NUL = /[\r\n\0]/;
/** A template that asks for more secrets than this by `secret` is a loop over something unbounded. */
const MAX_SECRETS_BY_FUNCTION = 100;

export interface RendererParts {
  readonly environment: NodeJS.ProcessEnv;
  readonly username: string;
  /** A keyed hash (see StateFile.hmac). */
  readonly hash: (text: string) => string;
}

/** Turns secrets into the content that a rule wants in its file, and keeps values from becoming structure. */
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
      const surroundings: TemplateSurroundings = {
        data: dataOf(rule, documents),
        username: this.#parts.username,
        env: (name) => {
          environment.add(name);
          return this.#parts.environment[name];
        },
        secret: (path) => documents.get(path)?.fields,
      };
      const ofLines = LINE_FORMATS.has(format.name);
      const printed: Printed[] = [];
      const outcome = template.execute(surroundings, (text, interpolation) => {
        printed.push({ ...interpolation, text });
        return ofLines ? refuseLineBreaks(text, interpolation) : text;
      });
      if (outcome.kind === "text") {
        const content = format.parse(outcome.text);
        if (STRUCTURED_FORMATS.has(format.name)) refuseStructure(template, surroundings, format, content);
        if (ofLines || STRUCTURED_FORMATS.has(format.name)) {
          refuseInterference(template, surroundings, format, { printed, content, valuesAsKeys: ofLines });
        }
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

/** What the content was made from. */
function madeFrom(documents: ReadonlyMap<string, SecretDocument>): {
  inputs: Record<string, string>;
  version: number | null;
} {
  const [only] = documents.size === 1 ? documents.values() : [];
  const inputs = Object.fromEntries([...documents].map(([path, document]) => [path, stampOf(document)]));
  return { inputs, version: only?.version ?? null };
}

function refuseLineBreaks(text: string, { line, safe }: Interpolation): string {
  if (safe || !LINE_BREAK_OR_NUL.test(text)) return text;
  throw new AgentError(
    "value_injection",
    `template line ${line}: the value holds a line break or a NUL, which could add settings of its own`,
    { hint: "Pipe it through quote, base64encode, toJSON or raw." },
  );
}

/**
 * Refuses content whose structure depends on values: rendered with placeholders in their place, it must have the same
 * keys. Names the line of the action whose value makes the difference.
 */
function refuseStructure(
  template: RuleTemplate,
  surroundings: TemplateSurroundings,
  format: DocumentFormat,
  content: EditMap,
): void {
  const interpolations: Interpolation[] = [];
  const sameWith = (replace: (index: number) => boolean): boolean => {
    interpolations.length = 0;
    const outcome = template.execute(surroundings, (text, interpolation) => {
      interpolations.push(interpolation);
      return replace(interpolations.length - 1) && !interpolation.safe ? placeholderFor(text) : text;
    });
    if (outcome.kind !== "text") return false;
    try {
      return sameShape(content, format.parse(outcome.text));
    } catch (error) {
      if (error instanceof DocumentEditError) return false;
      throw error;
    }
  };
  if (sameWith(() => true)) return;
  const count = interpolations.length;
  const culprit = Array.from({ length: count }, (_, index) => index).find(
    (index) => !sameWith((i) => i === index),
  );
  const line = culprit === undefined ? undefined : interpolations[culprit]?.line;
  throw new AgentError(
    "value_injection",
    `${line === undefined ? "template" : `template line ${line}`}: the value changes the structure of the document`,
    { hint: "Pipe it through quote or toJSON, and write keys in the template itself." },
  );
}

/** Refuses content in which a value has changed more than the places where it is printed. */
function refuseInterference(
  template: RuleTemplate,
  surroundings: TemplateSurroundings,
  format: DocumentFormat,
  first: Omit<Rerender, "render">,
): void {
  const line = findInterference({
    ...first,
    render: (replace) => {
      let index = 0;
      const outcome = template.execute(surroundings, (text) => replace(index++, text));
      if (outcome.kind !== "text") throw new Error("a template asks for a secret that it has had");
      return format.parse(outcome.text);
    },
  });
  if (line === undefined) return;
  throw new AgentError(
    "value_injection",
    `${line === 0 ? "template" : `template line ${line}`}: the value changes more than the place where it is printed`,
    { hint: "Pipe it through quote or toJSON." },
  );
}

/** Valid wherever a scalar is, also as part of a number or a word; what stands before the value keeps its place. */
function placeholderFor(text: string): string {
  return `${/^\s*/.exec(text)?.[0] ?? ""}1`;
}
