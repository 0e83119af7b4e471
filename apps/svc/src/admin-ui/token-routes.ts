import type { Clock } from "@devplat/base";
import type { Assets } from "@devplat/web-kit";
import { clientOf } from "../admin-api/client.ts";
import { tokenRequestSchema } from "../admin-api/tokens.ts";
import { validateBody } from "../admin-api/validation.ts";
import type { AppRegistry } from "../apps/app-registry.ts";
import type { Identity } from "../login/sessions.ts";
import type { OwnAddress } from "../own-address.ts";
import type { TokenMint } from "../tokens/token-mint.ts";
import { refusedForm } from "./form.ts";
import { refusalStatus, type Form, type Pages } from "./pages.ts";
import { OTHER_RESOURCES, scopeField, tokensPage, type TokensPageOptions } from "./tokens-page.ts";

export interface TokenRoutes {
  readonly pages: Pages;
  readonly assets: Assets;
  readonly version: string;
  readonly mint: TokenMint;
  readonly apps: AppRegistry;
  readonly address: OwnAddress;
  readonly clock: Clock;
}

/** The access that was chosen, and what else was. */
export function chosenScopes(form: Form): string {
  const others = OTHER_RESOURCES.flatMap((resource) => {
    const level = form[scopeField(resource)] ?? "";
    return level === "" ? [] : [`${resource}:${level}`];
  });
  return [form["scopes"] ?? "", ...others].join(",");
}

/** Tokens on one page. */
const TOKENS_PER_PAGE = 100;

const FIELDS = ["repository", "scopes", "duration", "description"] as const;

/** The "Tokens" section; for every user. */
export function addTokenRoutes({ pages, assets, version, mint, apps, address, clock }: TokenRoutes): void {
  const pageFor = async (identity: Identity, cursor?: string): Promise<TokensPageOptions> => ({
    apps: identity.role === "admin" ? await apps.list() : [],
    assets,
    version,
    identity,
    tokens: await mint.list(identity, { limit: TOKENS_PER_PAGE, cursor }),
    isLater: cursor !== undefined,
    baseUrl: address.baseUrl,
    now: clock.now(),
  });

  pages.get("/admin/tokens", false, async (context, identity) =>
    pages.show(
      context,
      tokensPage({
        ...(await pageFor(identity, context.req.query("cursor"))),
        done: context.req.query("done"),
      }),
    ),
  );

  pages.post("/admin/tokens", false, async (context, identity, form) => {
    try {
      const description = (form["description"] ?? "").trim();
      const appId = form["app"] ?? "";
      const body = validateBody(tokenRequestSchema, {
        repository: (form["repository"] ?? "").trim(),
        scopes: chosenScopes(form),
        duration: form["duration"] ?? "",
        ...(description === "" ? {} : { description }),
        // The mint refuses an agent token to whoever is no admin.
        ...(appId === "" ? {} : { type: "agent", app_id: appId }),
      });
      const { token, record } = await mint.mint(
        identity,
        clientOf(context),
        { ...body, type: body.type ?? "proxy", ip_allow: [] },
        true,
      );
      const minted = { value: token.reveal(), repository: record.repositories[0] ?? "" };
      // No redirect: the value must not be in an address, and this page is the only one that has it.
      return await pages.show(context, tokensPage({ ...(await pageFor(identity)), minted }));
    } catch (error) {
      const refused = refusedForm(error, form, FIELDS);
      if (refused === undefined) throw error;
      const page = tokensPage({ ...(await pageFor(identity)), form: refused });
      return pages.show(context, page, refusalStatus(error));
    }
  });

  pages.post("/admin/tokens/:id/revoke", false, async (context, identity) => {
    await mint.revoke(identity, clientOf(context), context.req.param("id") ?? "");
    return context.redirect("/admin/tokens?done=revoked#done", 303);
  });
}
