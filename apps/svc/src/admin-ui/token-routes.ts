import type { Identity } from "../identity/principal.ts";
import type { Clock } from "@devplat/base";
import type { Assets } from "@devplat/web-kit";
import { z } from "zod";
import { clientOf } from "../http/request/management-client.ts";
import { tokenRequestSchema } from "../admin-api/tokens.ts";
import { timePagingQuery } from "../admin-api/paging.ts";
import { validateBody, validateQuery } from "../admin-api/validation.ts";
import type { AppRegistry } from "../identity/apps/app-registry.ts";
import type { OwnAddress } from "../own-address.ts";
import type { TokenMint } from "../administration/token-mint.ts";
import { FieldError } from "../errors.ts";
import { numberOrNull, refusedForm } from "./form.ts";
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

const pageQuery = z.object({ cursor: timePagingQuery.cursor, done: z.string().optional() });

/** Tokens on one page. */
const TOKENS_PER_PAGE = 100;

const FIELDS = [
  "repository",
  "scopes",
  "duration",
  "description",
  "ip_allow",
  "requests_per_minute",
] as const;

/** What was typed into a field that takes several, by comma or blanks. */
export function listOf(text: string | undefined): readonly string[] {
  return (text ?? "").split(/[\s,]+/).filter((part) => part !== "");
}

/** The faults of one of several values, said of the field that they were typed into. */
function ofFields(error: unknown, repositories: readonly string[], addresses: readonly string[]): unknown {
  if (!(error instanceof FieldError)) return error;
  return new FieldError(
    error.faults.map(({ pointer, message }) => {
      const [, name = "", index = ""] = pointer.split("/");
      const value = (name === "repositories" ? repositories : addresses)[Number(index)];
      if (index === "" || value === undefined || !["repositories", "ip_allow"].includes(name)) {
        return { pointer: name === "repositories" ? "/repository" : pointer, message };
      }
      const said = name === "repositories" && repositories.length === 1 ? message : `${value}: ${message}`;
      return { pointer: name === "repositories" ? "/repository" : "/ip_allow", message: said };
    }),
  );
}

/** The "Tokens" section; for every user. */
export function addTokenRoutes({ pages, assets, version, mint, apps, address, clock }: TokenRoutes): void {
  const pageFor = async (identity: Identity, cursor?: string): Promise<TokensPageOptions> => {
    const tokens = await mint.list(identity, { limit: TOKENS_PER_PAGE, cursor });
    return {
      apps: identity.role === "admin" ? await apps.list() : [],
      assets,
      version,
      identity,
      tokens,
      logins: await mint.loginsOf(identity, tokens.records),
      isLater: cursor !== undefined,
      baseUrl: address.baseUrl,
      now: clock.now(),
    };
  };

  pages.get("/admin/tokens", false, async (context, identity) => {
    const { cursor, done } = validateQuery(pageQuery, new URL(context.req.url).searchParams);
    return pages.show(context, tokensPage({ ...(await pageFor(identity, cursor)), done }));
  });

  pages.post("/admin/tokens", false, async (context, identity, form) => {
    const repositories = listOf(form["repository"]);
    const addresses = listOf(form["ip_allow"]);
    try {
      const description = (form["description"] ?? "").trim();
      const appId = form["app"] ?? "";
      const rate = numberOrNull(form["requests_per_minute"]);
      const body = validateBody(tokenRequestSchema, {
        ...(repositories.length === 0 ? { repository: "" } : { repositories }),
        ip_allow: addresses,
        ...(rate === null ? {} : { requests_per_minute: rate }),
        scopes: chosenScopes(form),
        duration: form["duration"] ?? "",
        ...(description === "" ? {} : { description }),
        // The mint refuses an agent token to whoever is no admin.
        ...(appId === "" ? {} : { type: "agent", app_id: appId }),
      });
      const { token, record } = await mint.mint(
        identity,
        clientOf(context),
        { ...body, type: body.type ?? "proxy", ip_allow: body.ip_allow ?? [] },
        true,
      );
      const minted = { value: token.reveal(), repository: record.repositories[0] ?? "" };
      // No redirect: the value must not be in an address, and this page is the only one that has it.
      return await pages.show(context, tokensPage({ ...(await pageFor(identity)), minted }));
    } catch (error) {
      const refused = refusedForm(ofFields(error, repositories, addresses), form, FIELDS);
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
