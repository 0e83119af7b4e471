import {
  FunctionError,
  parseTemplate,
  standardFunctions,
  type Template,
  type ValueContext,
} from "@devplat/go-template";
import type { FieldValue, Fields } from "@devplat/secret-store";
import { BRAND } from "../../brand.ts";

/** One action that printed a value; its line counts from 1, in the template. */
export type Interpolation = ValueContext;

/** Data and functions of a template. */
export interface TemplateContext {
  readonly data: ReadonlyMap<string, FieldValue>;
  readonly username: string;
  readonly env: (name: string) => string | undefined;
  /** The fields of another secret; undefined if they have not been read yet. */
  readonly secret: (path: string) => Fields | undefined;
}

export type TemplateOutcome =
  | { readonly kind: "text"; readonly text: string }
  /** The template asks for this secret, which has to be read first. */
  | { readonly kind: "needs"; readonly path: string };

/** Our own variables are not for files: one of them is the token. */
const OWN_VARIABLES = `${BRAND.environmentPrefix}_`;

/** A rule's template, parsed. */
export class RuleTemplate {
  readonly #template: Template;

  /** @throws TemplateError with line and column */
  constructor(rule: string, text: string) {
    this.#template = parseTemplate(rule, text);
  }

  /**
   * @param onValue sees each printed value and gives what is printed instead
   * @throws TemplateError, and the errors of `onValue`
   */
  execute(
    surroundings: TemplateContext,
    onValue: (text: string, interpolation: Interpolation) => string,
  ): TemplateOutcome {
    let needed: string | undefined;
    const functions = standardFunctions({
      env: (name) => {
        if (name.startsWith(OWN_VARIABLES))
          throw new FunctionError(`env does not give ${OWN_VARIABLES} variables`);
        return surroundings.env(name) ?? "";
      },
      secret: (path) => {
        const fields = surroundings.secret(path);
        if (fields !== undefined) return fields;
        // Reading is asynchronous and templates are not: this run ends here and begins again with the secret.
        needed = path;
        throw new FunctionError("the secret has not been read yet");
      },
      username: () => surroundings.username,
    });
    try {
      return { kind: "text", text: this.#template.execute(surroundings.data, functions, { onValue }) };
    } catch (error) {
      if (needed === undefined) throw error;
      return { kind: "needs", path: needed };
    }
  }
}
