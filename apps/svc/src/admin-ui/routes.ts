import type { Hono } from "hono";
import { addAccountRoutes, type AccountRoutes } from "./account-routes.ts";
import { addAppRoutes, type AppRoutes } from "./app-routes.ts";
import { addAuditRoutes, type AuditRoutes } from "./audit-routes.ts";
import { addConfigurationRoutes, type ConfigurationRoutes } from "./configuration-routes.ts";
import { addDashboardRoutes, type DashboardRoutes } from "./dashboard-routes.ts";
import { addDeviceRoutes, type DeviceRoutes } from "./device-routes.ts";
import { addExplainRoutes, type ExplainRoutes } from "./explain-routes.ts";
import { EMPTY_FORM } from "./form.ts";
import { addHelpRoutes, type HelpRoutes } from "./help-routes.ts";
import { loginPage } from "./login-page.ts";
import { addLoginRoutes, type LoginRoutes } from "./login-routes.ts";
import { Pages, type PagesOptions } from "./pages.ts";
import { addRepositoryRoutes, type RepositoryRoutes } from "./repository-routes.ts";
import { addTokenRoutes, type TokenRoutes } from "./token-routes.ts";

/** What the pages stand on. */
export type AdminUiOptions = Omit<
  PagesOptions &
    LoginRoutes &
    DeviceRoutes &
    AccountRoutes &
    AppRoutes &
    AuditRoutes &
    ConfigurationRoutes &
    DashboardRoutes &
    ExplainRoutes &
    HelpRoutes &
    RepositoryRoutes &
    TokenRoutes,
  "app" | "pages" | "loginPage"
>;

/**
 * The pages under /admin. Plain forms that work without scripting: a post that succeeds redirects (303), one that is
 * refused shows its page again with what was typed. Every post must come from a page of ours.
 */
export function addAdminUi(app: Hono, options: AdminUiOptions): void {
  const { assets, version, testLogin, webLogin } = options;
  const hostName = webLogin === undefined ? undefined : options.hostName;
  const login: LoginRoutes["loginPage"] = (returnTo, form, failure) => {
    const shown = testLogin === undefined ? undefined : form;
    return loginPage({ assets, version, returnTo, hostName, form: shown, failure });
  };
  const pages = new Pages({ ...options, app, loginPage: (returnTo) => login(returnTo, EMPTY_FORM) });
  addLoginRoutes({ ...options, app, pages, loginPage: login });
  addDeviceRoutes({ ...options, pages });
  addAccountRoutes({ ...options, pages });
  addAppRoutes({ ...options, pages });
  addAuditRoutes({ ...options, pages });
  addConfigurationRoutes({ ...options, pages });
  addDashboardRoutes({ ...options, pages });
  addHelpRoutes({ ...options, pages });
  addRepositoryRoutes({ ...options, pages });
  addExplainRoutes({ ...options, pages });
  addTokenRoutes({ ...options, pages });
  for (const path of ["/admin/*", "/ui/*"]) {
    pages.get(path, false, async (context, identity) =>
      pages.say(context, 404, "Not found", "No page has this address.", identity),
    );
  }
}
