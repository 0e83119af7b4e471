import type { Hono } from "hono";
import { addAccountRoutes, type AccountRoutes } from "./account/account-routes.ts";
import { addAppRoutes, type AppRoutes } from "./apps/app-routes.ts";
import { addAuditRoutes, type AuditRoutes } from "./audit/audit-routes.ts";
import { addConfigurationRoutes, type ConfigurationRoutes } from "./configuration/configuration-routes.ts";
import { addDashboardRoutes, type DashboardRoutes } from "./dashboard/dashboard-routes.ts";
import { addDeviceRoutes, type DeviceRoutes } from "./login/device-routes.ts";
import { addExplainRoutes, type ExplainRoutes } from "./tokens/explain-routes.ts";
import { EMPTY_FORM } from "./common/form.ts";
import { addHelpRoutes, type HelpRoutes } from "./help/help-routes.ts";
import { loginPage } from "./login/login-page.ts";
import { addLoginRoutes, type LoginRoutes } from "./login/login-routes.ts";
import { messagePage } from "./common/message-page.ts";
import { Pages, type PagesParts } from "./common/pages.ts";
import { addRepositoryRoutes, type RepositoryRoutes } from "./repositories/repository-routes.ts";
import { addTokenRoutes, type TokenRoutes } from "./tokens/token-routes.ts";

/** Collaborators of all pages. */
export type AdminUiParts = Omit<
  PagesParts &
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
  "app" | "pages" | "loginPage" | "canConnect"
>;

/**
 * The pages under /admin. Plain forms that work without scripting: a post that succeeds redirects (303), one that is
 * refused shows its page again with what was typed. Every post must come from a page of this service.
 */
export function addAdminUi(app: Hono, parts: AdminUiParts): void {
  const canConnect = parts.webLogin !== undefined;
  const hostName = canConnect ? parts.hostName : undefined;
  const login: LoginRoutes["loginPage"] = (returnTo, form, failure) =>
    loginPage({ returnTo, hostName, form: parts.testLogin === undefined ? undefined : form, failure });
  const pages = new Pages({ ...parts, app, loginPage: (returnTo) => login(returnTo, EMPTY_FORM) });
  const routes = { ...parts, app, pages, canConnect, loginPage: login };
  addLoginRoutes(routes);
  addDeviceRoutes(routes);
  addAccountRoutes(routes);
  addAppRoutes(routes);
  addAuditRoutes(routes);
  addConfigurationRoutes(routes);
  addDashboardRoutes(routes);
  addHelpRoutes(routes);
  addRepositoryRoutes(routes);
  addExplainRoutes(routes);
  addTokenRoutes(routes);
  for (const path of ["/admin/*", "/ui/*"]) {
    pages.get(path, "user", async ({ show }) =>
      show(messagePage("Not found", "No page has this address."), 404),
    );
  }
}
