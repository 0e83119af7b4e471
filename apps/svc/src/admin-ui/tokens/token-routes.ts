import type { Clock } from "@devplat/base";
import type { Apps } from "../../administration/apps/apps.ts";
import type { Tokens } from "../../administration/tokens/tokens.ts";
import { FieldError } from "../../errors.ts";
import type { Actor } from "../../identity/principal.ts";
import type { OwnAddress } from "../../own-address.ts";
import { numberOrNull, refusedForm } from "../common/form.ts";
import { refusalStatus, type Form, type Pages } from "../common/pages.ts";
import { OTHER_RESOURCES, scopeField, tokensPage, type TokensPageOptions } from "./tokens-page.ts";

export interface TokenRoutes {
  readonly pages: Pages;
  readonly tokens: Tokens;
  readonly apps: Apps;
  readonly address: OwnAddress;
  readonly clock: Clock;
}

/** The chosen access and the other chosen rights, as the API takes them. */
export function chosenScopes(form: Form): string {
  const others = OTHER_RESOURCES.flatMap((resource) => {
    const level = form[scopeField(resource)] ?? "";
    return level === "" ? [] : [`${resource}:${level}`];
  });
  return [form["scopes"] ?? "", ...others].join(",");
}

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

/** The values of a field that takes several, separated by commas or blanks. */
export function listOf(text: string | undefined): readonly string[] {
  return (text ?? "").split(/[\s,]+/).filter((part) => part !== "");
}

/** Faults of one of several values, as faults of the field that they were typed into. */
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
export function addTokenRoutes({ pages, tokens, apps, address, clock }: TokenRoutes): void {
  const pageFor = async (actor: Actor, cursor?: string): Promise<TokensPageOptions> => {
    const everybody = actor.role === "admin";
    const page = await tokens.list(actor, { limit: TOKENS_PER_PAGE, cursor });
    return {
      apps: everybody ? await apps.list(actor) : [],
      everybody,
      tokens: page,
      logins: await tokens.loginsOf(actor, page.records),
      isLater: cursor !== undefined,
      baseUrl: address.baseUrl,
      now: clock.now(),
    };
  };

  pages.get("/admin/tokens", "user", async ({ actor, query: { cursor, done }, show }) =>
    show(tokensPage({ ...(await pageFor(actor, cursor)), done })),
  );

  pages.post("/admin/tokens", "user", async ({ actor, form, show }) => {
    const repositories = listOf(form["repository"]);
    const addresses = listOf(form["ip_allow"]);
    try {
      const description = (form["description"] ?? "").trim();
      const appId = form["app"] ?? "";
      const rate = numberOrNull(form["requests_per_minute"]);
      const input = {
        ...(repositories.length === 0 ? { repository: "" } : { repositories }),
        ip_allow: addresses,
        ...(rate === null ? {} : { requests_per_minute: rate }),
        scopes: chosenScopes(form),
        duration: form["duration"] ?? "",
        ...(description === "" ? {} : { description }),
        ...(appId === "" ? {} : { type: "agent", app_id: appId }),
      };
      const { token, record } = await tokens.create(actor, input, true);
      const minted = { value: token.reveal(), repository: record.repositories[0] ?? "" };
      // No redirect: the value must not be in an address, and this page is the only one that has it.
      return await show(tokensPage({ ...(await pageFor(actor)), minted }));
    } catch (error) {
      const refused = refusedForm(ofFields(error, repositories, addresses), form, FIELDS);
      if (refused === undefined) throw error;
      return show(tokensPage({ ...(await pageFor(actor)), form: refused }), refusalStatus(error));
    }
  });

  pages.post("/admin/tokens/:id/revoke", "user", async ({ actor, id, redirect }) => {
    await tokens.revoke(actor, id);
    return redirect("/admin/tokens?done=revoked#done");
  });
}
