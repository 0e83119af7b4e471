import { z } from "zod";
import { isWellFormed } from "../../credentials/token-format.ts";
import { FieldError, SvcError } from "../../errors.ts";
import type { Actor } from "../../identity/principal.ts";
import { splitRepository } from "../../repository-name.ts";
import type { TokenLimits } from "../../scopes/required-permissions.ts";
import { EVERYTHING, parseScopes } from "../../scopes/scopes.ts";
import type { TokenLookup } from "../../tokens/token-lookup.ts";
import type { Explanation, ScopeExplainer } from "./explain.ts";
import type { Tokens } from "./tokens.ts";
import { ALONGSIDE_FIELDS, validateBody } from "../../http/request/validation.ts";

const MAX_REPOSITORIES = 100;
const MAX_URL = 8192;
const MAX_QUERY = 256 * 1024;

const graphqlRequest = z.union([
  z.string().min(1).max(MAX_QUERY),
  z.strictObject({
    query: z.string().min(1).max(MAX_QUERY),
    variables: z.record(z.string(), z.unknown()).optional(),
    operationName: z.string().max(200).optional(),
  }),
]);

/** A token or scopes, and a request. */
export const explainRequestSchema = z
  .strictObject({
    token: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .meta({ description: "A token of this service, by its value" }),
    scopes: z
      .string()
      .min(1)
      .max(2000)
      .optional()
      .meta({ description: "In its place: the scopes of a token that does not exist yet" }),
    repositories: z.array(z.string().min(1).max(201)).min(1).max(MAX_REPOSITORIES).optional(),
    method: z
      .string()
      .regex(/^[A-Z]{1,20}$/, "must be a method in capitals")
      .optional()
      .meta({ description: "Default GET" }),
    url: z.string().min(1).max(MAX_URL).optional().meta({
      description: "An address of the code host or of this service, or a path of the API",
      example: "/repos/acme/widgets/issues",
    }),
    graphql: graphqlRequest.optional().meta({ description: "A query, or a whole request with variables" }),
  })
  .superRefine((body, context) => {
    const exactlyOne = (one: "token" | "url", other: "scopes" | "graphql"): void => {
      if ((body[one] === undefined) === (body[other] === undefined)) {
        context.addIssue({ code: "custom", path: [one], message: `give either ${one} or ${other}` });
      }
    };
    exactlyOne("token", "scopes");
    exactlyOne("url", "graphql");
    if (body.scopes !== undefined && body.repositories === undefined) {
      context.addIssue({ code: "custom", path: ["repositories"], message: "required with scopes" });
    }
    if (body.token !== undefined && body.repositories !== undefined) {
      context.addIssue({ code: "custom", path: ["repositories"], message: "a token has its own" });
    }
  }, ALONGSIDE_FIELDS)
  .meta({ id: "ExplainRequest" });

/** Explanations of what a token may do, for every user. */
export class Explanations {
  readonly #explainer: ScopeExplainer;
  readonly #lookup: Pick<TokenLookup, "find">;
  readonly #tokens: Pick<Tokens, "get">;

  constructor(parts: {
    readonly explainer: ScopeExplainer;
    readonly lookup: Pick<TokenLookup, "find">;
    readonly tokens: Pick<Tokens, "get">;
  }) {
    this.#explainer = parts.explainer;
    this.#lookup = parts.lookup;
    this.#tokens = parts.tokens;
  }

  /** Explains a request with a token of any user by its value, or with given scopes. @throws SvcError `not_found`, `invalid_fields` */
  async explain(input: unknown): Promise<Explanation> {
    const body = validateBody(explainRequestSchema, input);
    return this.#explain(
      body,
      body.token === undefined ? givenLimits(body) : await this.#limitsOf(body.token),
    );
  }

  /** Explains a request with a token that the actor sees, by its id. @throws SvcError `not_found`, `invalid_fields` */
  async explainToken(
    actor: Actor,
    id: string,
    input: Readonly<Record<string, unknown>>,
  ): Promise<Explanation> {
    const record = await this.#tokens.get(actor, id);
    // The schema wants a token; the record gives its limits.
    return this.#explain(validateBody(explainRequestSchema, { ...input, token: id }), record);
  }

  async #explain({ graphql, method, url }: ExplainRequest, limits: TokenLimits): Promise<Explanation> {
    return this.#explainer.explain(
      limits,
      graphql === undefined
        ? { kind: "address", method: method ?? "GET", url: url ?? "" }
        : { kind: "graphql", body: graphql },
    );
  }

  /** Who has the value of a token may use it, and so may see its limits. */
  async #limitsOf(value: string): Promise<TokenLimits> {
    const known = isWellFormed(value) ? await this.#lookup.find(value) : undefined;
    if (known === undefined) throw new SvcError("not_found", "No token has this value");
    return known.record;
  }
}

type ExplainRequest = z.output<typeof explainRequestSchema>;

/** Limits of a token that does not exist yet. @throws FieldError */
function givenLimits(body: ExplainRequest): TokenLimits {
  const { scopes, faults } = parseScopes(body.scopes ?? "");
  const repositories = body.repositories ?? [];
  const wrong = repositories.flatMap((text, index) => {
    const parts = text === EVERYTHING ? undefined : splitRepository(text);
    return typeof parts === "string" ? [{ pointer: `/repositories/${index}`, message: parts }] : [];
  });
  const found = [...faults.map((message) => ({ pointer: "/scopes", message })), ...wrong];
  if (found.length > 0) throw new FieldError(found);
  return { scopes, repositories };
}
