import type { Identity } from "../identity/principal.ts";
import type { Assets } from "@devplat/web-kit";
import { explainRequestSchema, givenLimits } from "../admin-api/scopes.ts";
import { validateBody } from "../admin-api/validation.ts";
import type { Explanation, ScopeExplainer } from "../administration/explain.ts";
import type { TokenRecord } from "../storage/store.ts";
import type { TokenMint } from "../administration/token-mint.ts";
import { explainPage, type ExplainPageOptions } from "./explain-page.ts";
import { refusedForm } from "./form.ts";
import { refusalStatus, type Form, type Pages } from "./pages.ts";
import { chosenScopes, listOf } from "./token-routes.ts";

export interface ExplainRoutes {
  readonly pages: Pages;
  readonly assets: Assets;
  readonly version: string;
  readonly mint: TokenMint;
  readonly explainer: ScopeExplainer;
}

const FIELDS = ["repository", "scopes", "method", "url"] as const;

/** Whether a token may make a request, and why; for every user, about tokens that they see. */
export function addExplainRoutes({ pages, assets, version, mint, explainer }: ExplainRoutes): void {
  pages.get("/admin/tokens/explain", false, async (context, identity) => {
    const query = context.req.query();
    const token = await tokenOf(mint, identity, query);
    // The form that makes a token sends its choices of rights one by one.
    const values = { ...query, scopes: chosenScopes(query) };
    const page: Omit<ExplainPageOptions, "explanation"> = {
      assets,
      version,
      identity,
      token,
      form: { values, faults: {} },
    };
    if ((query["url"] ?? "") === "") {
      return pages.show(context, explainPage({ ...page, explanation: undefined }));
    }
    try {
      const explanation = await explain(explainer, token, values);
      return await pages.show(context, explainPage({ ...page, explanation }));
    } catch (error) {
      const form = refusedForm(error, values, FIELDS);
      if (form === undefined) throw error;
      const refused = explainPage({ ...page, form, explanation: undefined });
      return pages.show(context, refused, refusalStatus(error));
    }
  });
}

/** @throws SvcError `not_found` */
async function tokenOf(mint: TokenMint, identity: Identity, query: Form): Promise<TokenRecord | undefined> {
  const id = query["token"] ?? "";
  return id === "" ? undefined : mint.get(identity, id);
}

/** @throws FieldError */
async function explain(
  explainer: ScopeExplainer,
  token: TokenRecord | undefined,
  values: Form,
): Promise<Explanation> {
  const asked = { method: values["method"] || "GET", url: (values["url"] ?? "").trim() };
  // A known token is judged by its record; what stands in for its value is not looked at.
  const whose =
    token === undefined
      ? { scopes: values["scopes"] ?? "", repositories: listOf(values["repository"]) }
      : { token: token.id };
  const body = validateBody(explainRequestSchema, { ...asked, ...whose });
  const limits = token ?? givenLimits(body);
  return explainer.explain(limits, { kind: "address", method: asked.method, url: asked.url });
}
