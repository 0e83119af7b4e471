import type { Explanations } from "../../administration/tokens/explanations.ts";
import type { Tokens } from "../../administration/tokens/tokens.ts";
import { explainPage, type ExplainPageOptions } from "./explain-page.ts";
import { refusedForm } from "../common/form.ts";
import { refusalStatus, type Pages } from "../common/pages.ts";
import { chosenScopes, listOf } from "./token-routes.ts";

export interface ExplainRoutes {
  readonly pages: Pages;
  readonly tokens: Tokens;
  readonly explanations: Explanations;
}

const FIELDS = ["repository", "scopes", "method", "url"] as const;

/** Whether a token may make a request, and why; for every user, about tokens that they see. */
export function addExplainRoutes({ pages, tokens, explanations }: ExplainRoutes): void {
  pages.get("/admin/tokens/explain", "user", async ({ actor, query, show }) => {
    const { token: id = "", repository, method } = query;
    const token = id === "" ? undefined : await tokens.get(actor, id);
    // The form that makes a token sends each right in a field of its own.
    const values = { ...query, scopes: chosenScopes(query) };
    const page: ExplainPageOptions = { token, form: { values, faults: {} }, explanation: undefined };
    const url = (query["url"] ?? "").trim();
    if (url === "") return show(explainPage(page));
    try {
      const request = { method: method || "GET", url };
      const explanation =
        token === undefined
          ? await explanations.explain({
              ...request,
              scopes: values.scopes,
              repositories: listOf(repository),
            })
          : await explanations.explainToken(actor, token.id, request);
      return await show(explainPage({ ...page, explanation }));
    } catch (error) {
      const form = refusedForm(error, values, FIELDS);
      if (form === undefined) throw error;
      return show(explainPage({ ...page, form }), refusalStatus(error));
    }
  });
}
