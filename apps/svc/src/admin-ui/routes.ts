import type { Html } from "@devplat/web-kit";
import type { Hono } from "hono";
import { EMPTY_FORM, type FormState } from "./form.ts";
import { loginPage } from "./login-page.ts";
import { addLoginRoutes, type LoginRoutes } from "./login-routes.ts";
import { Pages, type PagesOptions } from "./pages.ts";
import { addRepositoryRoutes, type RepositoryRoutes } from "./repository-routes.ts";
import { addTokenRoutes, type TokenRoutes } from "./token-routes.ts";

/** What the pages stand on. */
export type AdminUiOptions = Omit<
  PagesOptions & LoginRoutes & RepositoryRoutes & TokenRoutes,
  "app" | "pages" | "loginPage"
>;

/**
 * The pages under /admin. Plain forms that work without scripting: a post that succeeds redirects (303), one that is
 * refused shows its page again with what was typed. Every post must come from a page of ours.
 */
export function addAdminUi(app: Hono, options: AdminUiOptions): void {
  const { assets, version, testLogin } = options;
  const login = (form: FormState): Html =>
    loginPage({ assets, version, form: testLogin === undefined ? undefined : form });
  const pages = new Pages({ ...options, app, loginPage: () => login(EMPTY_FORM) });
  addLoginRoutes({ ...options, app, pages, loginPage: login });
  addRepositoryRoutes({ ...options, pages });
  addTokenRoutes({ ...options, pages });
  pages.get("/admin/*", false, async (context, identity) =>
    pages.say(context, 404, "Not found", "No page has this address.", identity),
  );
}
