import type { Logger } from "@devplat/base";
import type { Context, Hono } from "hono";
import { admit, type Access } from "../../administration/permission.ts";
import type { AuditTrail } from "../../audit/audit-event.ts";
import { clientOf, requestFacts } from "../../http/request/management-client.ts";
import { readForm } from "../../http/request/request-body.ts";
import { INTERNAL, documentOf, problemOf } from "../../http/request/problem.ts";
import type { Authenticator } from "../../identity/login/authenticator.ts";
import type { Actor, Identity } from "../../identity/principal.ts";
import { layout, type Frame, type Page } from "./layout.ts";
import { messagePage } from "./message-page.ts";

const PAGE_STATUSES = [200, 400, 403, 404, 405, 408, 409, 412, 413, 415, 422, 429, 500, 502, 503] as const;
export type PageStatus = (typeof PAGE_STATUSES)[number];
/** A form's fields as they were sent; of a name that came twice, the last. */
export type Form = Readonly<Record<string, string>>;

/** A request for a page by somebody who may see it. */
export interface PageRequest {
  readonly context: Context;
  readonly actor: Actor;
  readonly form: Form;
  readonly query: Form;
  /** The path's `:id` part; empty where it has none. */
  readonly id: string;
  readonly show: (page: Page, status?: PageStatus) => Promise<Response>;
  readonly redirect: (path: string) => Response;
}
export type PageHandler = (request: PageRequest) => Promise<Response>;

export interface PagesParts extends Frame {
  readonly app: Hono;
  readonly authenticator: Authenticator;
  readonly audit: AuditTrail;
  readonly logger: Logger;
  /** The page for callers without a session. @param returnTo path of the page that they asked for */
  readonly loginPage: (returnTo: string) => Page;
}

/** Serves pages to callers who may see them: the steps that every page has in common. */
export class Pages {
  readonly #parts: PagesParts;

  constructor(parts: PagesParts) {
    this.#parts = parts;
  }

  get(path: string, access: Access, handler: PageHandler): void {
    this.#parts.app.get(path, async (context) => this.#serve(context, access, handler));
  }

  /** The authenticator lets a post pass only if it comes from a page of this service. */
  post(path: string, access: Access, handler: PageHandler): void {
    this.#parts.app.post(path, async (context) => this.#serve(context, access, handler));
  }

  /** A page for everybody. Callers with a session see the sections, too. */
  open(path: string, page: () => Page): void {
    this.#parts.app.get(path, async (context) => {
      try {
        const caller = await this.#parts.authenticator.identify(requestFacts(context));
        const isPerson = caller.kind === "identity" && caller.identity.device === undefined;
        return await this.show(context, page(), 200, isPerson ? caller.identity : undefined);
      } catch (error) {
        return this.fail(context, error);
      }
    });
  }

  async show(context: Context, page: Page, status: PageStatus, identity?: Identity): Promise<Response> {
    return context.html(await layout(page, this.#parts, identity), status);
  }

  /** The page for an error that is not about the input of a form. Faults of the service are logged. */
  async fail(context: Context, error: unknown, identity?: Identity): Promise<Response> {
    const problem = problemOf(error) ?? INTERNAL;
    const document = documentOf(problem);
    if (document.status >= 500) this.#parts.logger.error({ err: error }, "an administration page failed");
    for (const [name, value] of Object.entries(problem.headers ?? {})) context.header(name, value);
    // A page has the message and the status of the API.
    const status = PAGE_STATUSES.find((each) => each === document.status) ?? 500;
    const text = [document.detail, document.hint].filter((part) => part !== undefined).join(". ");
    return this.show(context, messagePage(TITLES[status] ?? "That did not work", text), status, identity);
  }

  async #serve(context: Context, access: Access, handler: PageHandler): Promise<Response> {
    const { authenticator, audit, loginPage } = this.#parts;
    const { method, path } = context.req;
    let shownTo: Identity | undefined;
    try {
      const facts = requestFacts(context);
      const caller = await authenticator.identify(facts);
      // Pages are for people. Programs use the API.
      if (caller.kind === "nobody" || (caller.kind === "identity" && caller.identity.device !== undefined)) {
        if (method === "POST") return context.redirect("/admin", 303);
        const { pathname, search } = new URL(context.req.url);
        return await this.show(context, loginPage(pathname + search), 200);
      }
      if (caller.kind === "identity") {
        shownTo = caller.identity;
        // The address of the service leads users to their own start page.
        if (path === "/admin" && shownTo.role !== "admin") return context.redirect("/admin/tokens", 303);
      }
      const client = clientOf(context);
      const hasCredential = facts.authorization !== undefined;
      const actor = admit({ caller, client, path, hasCredential }, access, audit);
      return await handler({
        context,
        actor,
        form:
          method === "POST" && hasBody(context) ? Object.fromEntries(await readForm(context.req.raw)) : {},
        query: context.req.query(),
        id: context.req.param("id") ?? "",
        show: async (page, status = 200) => this.show(context, page, status, actor),
        redirect: (target) => context.redirect(target, 303),
      });
    } catch (error) {
      return this.fail(context, error, shownTo);
    }
  }
}

const TITLES: Readonly<Partial<Record<PageStatus, string>>> = {
  403: "Not allowed",
  404: "Not found",
  503: "Not available now",
};

/** The status of a page that shows its form again. */
export function refusalStatus(error: unknown): PageStatus {
  const problem = problemOf(error);
  const status = problem && documentOf(problem).status;
  if (status === 409 || status === 412) return 409;
  return status === 502 ? 502 : 422;
}

function hasBody(context: Context): boolean {
  const length = context.req.header("content-length") ?? "0";
  return length !== "0" || context.req.header("transfer-encoding") !== undefined;
}
