import type { Identity } from "../identity/principal.ts";
import { Secret } from "@devplat/base";
import { STRICT_CSP, type Assets } from "@devplat/web-kit";
import { appRequestSchema } from "../admin-api/apps.ts";
import { clientOf } from "../http/request/management-client.ts";
import { validateBody } from "../admin-api/validation.ts";
import type { AppRegistry } from "../identity/apps/app-registry.ts";
import {
  MANIFEST_CALLBACK_PATH,
  registrationOrigin,
  type ManifestFlow,
} from "../identity/apps/manifest-flow.ts";
import type { CodeHost } from "../code-host/code-host.ts";
import { FieldError } from "../errors.ts";
import { appsPage, manifestPage, removeAppPage, type AppsPageOptions } from "./apps-page.ts";
import { refusedForm } from "./form.ts";
import { refusalStatus, type Form, type Pages } from "./pages.ts";

export interface AppRoutes {
  readonly pages: Pages;
  readonly assets: Assets;
  readonly version: string;
  readonly apps: AppRegistry;
  readonly manifestFlow: ManifestFlow;
  readonly codeHost: CodeHost;
  readonly hostName: string;
}

const REGISTER_FIELDS = ["app_id", "private_key", "webhook_secret"] as const;
const MANIFEST_FIELDS = ["name", "owner"] as const;
/** What the code host takes as a name of an app, and of an account. */
const NAME_FORM = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,33}$/;
const OWNER_FORM = /^[A-Za-z0-9][A-Za-z0-9-]{0,38}$/;

/** The "Apps" section; for admins. */
export function addAppRoutes(routes: AppRoutes): void {
  const { pages, assets, version, apps, manifestFlow, codeHost, hostName } = routes;
  const show = async (
    identity: Identity,
    more: Partial<AppsPageOptions> = {},
  ): Promise<ReturnType<typeof appsPage>> =>
    appsPage({ assets, version, identity, apps: await apps.list(), codeHost, hostName, ...more });

  pages.get("/admin/apps", true, async (context, identity) =>
    pages.show(context, await show(identity, { done: context.req.query("done") })),
  );

  pages.post("/admin/apps", true, async (context, identity, form) => {
    try {
      const webhookSecret = form["webhook_secret"] ?? "";
      const body = validateBody(appRequestSchema, {
        app_id: (form["app_id"] ?? "").trim(),
        private_key: form["private_key"] ?? "",
        ...(webhookSecret === "" ? {} : { webhook_secret: webhookSecret }),
      });
      const given = {
        appId: body.app_id,
        privateKey: new Secret(body.private_key),
        webhookSecret: typeof body.webhook_secret === "string" ? new Secret(body.webhook_secret) : undefined,
        isDefault: false,
      };
      await apps.register(given, identity, clientOf(context));
      return context.redirect("/admin/apps?done=registered#done", 303);
    } catch (error) {
      // What was typed as a secret is not shown again.
      const registerForm = refusedForm(error, { app_id: form["app_id"] ?? "" }, REGISTER_FIELDS);
      if (registerForm === undefined) throw error;
      return pages.show(context, await show(identity, { registerForm }), refusalStatus(error));
    }
  });

  pages.post("/admin/apps/manifest", true, async (context, identity, form) => {
    try {
      const { name, owner } = manifestFields(form);
      const begun = await manifestFlow.begin(identity, name, owner);
      // This one page posts to the code host.
      const policy = STRICT_CSP.replace(
        "form-action 'self'",
        `form-action 'self' ${registrationOrigin(codeHost)}`,
      );
      context.header("Content-Security-Policy", policy);
      return await pages.show(context, manifestPage({ assets, version, identity, hostName, ...begun }));
    } catch (error) {
      const manifestForm = refusedForm(error, form, MANIFEST_FIELDS);
      if (manifestForm === undefined) throw error;
      return pages.show(context, await show(identity, { manifestForm }), refusalStatus(error));
    }
  });

  pages.get(MANIFEST_CALLBACK_PATH, true, async (context, identity) => {
    const callback = { code: context.req.query("code"), state: context.req.query("state") };
    await manifestFlow.finish(callback, identity, clientOf(context));
    return context.redirect("/admin/apps?done=created#done", 303);
  });

  pages.post("/admin/apps/:id/check", true, async (context, identity) => {
    const checked = await apps.check(context.req.param("id") ?? "");
    return pages.show(context, await show(identity, { checked }));
  });

  pages.post("/admin/apps/:id/default", true, async (context, identity) => {
    const id = context.req.param("id") ?? "";
    await apps.update(id, { isDefault: true }, () => undefined, identity, clientOf(context));
    return context.redirect("/admin/apps?done=default#done", 303);
  });

  pages.get("/admin/apps/:id/remove", true, async (context, identity) => {
    const app = await apps.get(context.req.param("id") ?? "");
    return pages.show(context, removeAppPage({ assets, version, identity, app }));
  });

  pages.post("/admin/apps/:id/remove", true, async (context, identity) => {
    await apps.remove(context.req.param("id") ?? "", () => undefined, identity, clientOf(context));
    return context.redirect("/admin/apps?done=removed#done", 303);
  });
}

function manifestFields(form: Form): { name: string; owner: string | undefined } {
  const [name, owner] = [(form["name"] ?? "").trim(), (form["owner"] ?? "").trim()];
  const faults = [
    ...(NAME_FORM.test(name)
      ? []
      : [{ pointer: "/name", message: "up to 34 letters, digits, blanks, dots and dashes" }]),
    ...(owner === "" || OWNER_FORM.test(owner)
      ? []
      : [{ pointer: "/owner", message: "must be the login of an organization" }]),
  ];
  if (faults.length > 0) throw new FieldError(faults);
  return { name, owner: owner === "" ? undefined : owner };
}
