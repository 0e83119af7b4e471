import type { Identity } from "../identity/principal.ts";
import type { Logger } from "@devplat/base";
import type { Assets, Html } from "@devplat/web-kit";
import type { Context, Hono } from "hono";
import { readForm } from "../http/request/request-body.ts";
import { INTERNAL, documentOf, problemOf } from "../http/request/problem.ts";
import { requestFacts } from "../admin-api/router.ts";
import type { Authenticator } from "../identity/login/authenticator.ts";
import { messagePage } from "./message-page.ts";

const PAGE_STATUSES = [200, 400, 403, 404, 405, 408, 409, 412, 413, 415, 422, 429, 500, 502, 503] as const;
export type PageStatus = (typeof PAGE_STATUSES)[number];
/** A form's fields as they were sent; of a name that came twice, the last. */
export type Form = Readonly<Record<string, string>>;
/** Answers for somebody who is signed in, and may see the page. */
export type PageHandler = (context: Context, identity: Identity, form: Form) => Promise<Response>;

export interface PagesOptions {
  readonly app: Hono;
  readonly assets: Assets;
  readonly version: string;
  readonly authenticator: Authenticator;
  readonly logger: Logger;
  /** What nobody sees in the place of a page. @param returnTo path of the page */
  readonly loginPage: (returnTo: string) => Html;
}

/** Serves pages to who may see them: the steps that every page has in common. */
export class Pages {
  readonly #options: PagesOptions;

  constructor(options: PagesOptions) {
    this.#options = options;
  }

  get(path: string, adminOnly: boolean, handler: PageHandler): void {
    this.#options.app.get(path, async (context) => this.#serve(context, adminOnly, handler));
  }

  /** The authenticator lets a post pass only if it comes from a page of ours. */
  post(path: string, adminOnly: boolean, handler: PageHandler): void {
    this.#options.app.post(path, async (context) => this.#serve(context, adminOnly, handler));
  }

  /** A page for everybody; who is signed in sees the sections, too. */
  open(path: string, handler: (context: Context, identity: Identity | undefined) => Promise<Response>): void {
    this.#options.app.get(path, async (context) => {
      try {
        const caller = await this.#options.authenticator.identify(requestFacts(context));
        const shown = caller.kind === "identity" && caller.identity.device === undefined;
        return await handler(context, shown ? caller.identity : undefined);
      } catch (error) {
        return this.fail(context, error);
      }
    });
  }

  async show(context: Context, html: Html, status: PageStatus = 200): Promise<Response> {
    return context.html(await html, status);
  }

  /** A page that only says something. */
  async say(
    context: Context,
    status: PageStatus,
    title: string,
    text: string,
    identity?: Identity,
  ): Promise<Response> {
    const { assets, version } = this.#options;
    return this.show(context, messagePage({ assets, version, identity, title, text }), status);
  }

  /** The page for an error that no form is to blame for; faults of ours are logged. */
  async fail(context: Context, error: unknown): Promise<Response> {
    const problem = problemOf(error) ?? INTERNAL;
    const document = documentOf(problem);
    if (document.status >= 500) this.#options.logger.error({ err: error }, "an administration page failed");
    for (const [name, value] of Object.entries(problem.headers ?? {})) context.header(name, value);
    // A page says what the API says, with the same status.
    const status = PAGE_STATUSES.find((each) => each === document.status) ?? 500;
    const title = status === 404 ? "Not found" : status === 503 ? "Not available now" : "That did not work";
    const text = [document.detail, document.hint].filter((part) => part !== undefined).join(". ");
    return this.say(context, status, title, text);
  }

  async #serve(context: Context, adminOnly: boolean, handler: PageHandler): Promise<Response> {
    const posted = context.req.method === "POST";
    try {
      const caller = await this.#options.authenticator.identify(requestFacts(context));
      if (caller.kind === "refused") return await this.say(context, 403, "Not allowed", caller.message);
      // Pages are for people: what a program may do, the API does.
      if (caller.kind === "nobody" || caller.identity.device !== undefined) {
        if (posted) return context.redirect("/admin", 303);
        const { pathname, search } = new URL(context.req.url);
        return await this.show(context, this.#options.loginPage(pathname + search));
      }
      const { identity } = caller;
      if (adminOnly && identity.role !== "admin") {
        if (context.req.path === "/admin") return context.redirect("/admin/tokens", 303);
        return await this.say(context, 403, "Not allowed", "This needs the admin role.", identity);
      }
      const form = posted && hasBody(context) ? Object.fromEntries(await readForm(context.req.raw)) : {};
      return await handler(context, identity, form);
    } catch (error) {
      return this.fail(context, error);
    }
  }
}

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
