import { STRICT_CSP } from "@devplat/web-kit";
import type { Apps } from "../../administration/apps/apps.ts";
import {
  MANIFEST_CALLBACK_PATH,
  registrationOrigin,
  type ManifestFlow,
} from "../../administration/apps/manifest-flow.ts";
import type { CodeHost } from "../../code-host/code-host.ts";
import type { Actor } from "../../identity/principal.ts";
import { appsPage, manifestPage, removeAppPage, type AppsPageOptions } from "./apps-page.ts";
import { refusedForm } from "../common/form.ts";
import type { Page } from "../common/layout.ts";
import { refusalStatus, type Pages } from "../common/pages.ts";

export interface AppRoutes {
  readonly pages: Pages;
  readonly apps: Apps;
  readonly manifestFlow: ManifestFlow;
  readonly codeHost: CodeHost;
  readonly hostName: string;
}

const REGISTER_FIELDS = ["app_id", "private_key", "webhook_secret"] as const;
const MANIFEST_FIELDS = ["name", "owner"] as const;

/** The "Apps" section; for admins. */
export function addAppRoutes({ pages, apps, manifestFlow, codeHost, hostName }: AppRoutes): void {
  const pageFor = async (actor: Actor, more: Partial<AppsPageOptions> = {}): Promise<Page> =>
    appsPage({ apps: await apps.list(actor), codeHost, hostName, ...more });

  pages.get("/admin/apps", "admin", async ({ actor, query, show }) =>
    show(await pageFor(actor, { done: query["done"] })),
  );

  pages.post("/admin/apps", "admin", async ({ actor, form, show, redirect }) => {
    const { app_id: appId = "", private_key: privateKey = "", webhook_secret: secret = "" } = form;
    try {
      await apps.register(actor, {
        app_id: appId.trim(),
        private_key: privateKey,
        ...(secret === "" ? {} : { webhook_secret: secret }),
      });
      return redirect("/admin/apps?done=registered#done");
    } catch (error) {
      // Secrets that were typed are not shown again.
      const registerForm = refusedForm(error, { app_id: appId }, REGISTER_FIELDS);
      if (registerForm === undefined) throw error;
      return show(await pageFor(actor, { registerForm }), refusalStatus(error));
    }
  });

  pages.post("/admin/apps/manifest", "admin", async ({ context, actor, form, show }) => {
    try {
      const { name = "", owner = "" } = form;
      const begun = await manifestFlow.begin(actor, { name, owner });
      // This one page posts to the code host.
      const action = `form-action 'self' ${registrationOrigin(codeHost)}`;
      context.header("Content-Security-Policy", STRICT_CSP.replace("form-action 'self'", action));
      return await show(manifestPage({ hostName, ...begun }));
    } catch (error) {
      const manifestForm = refusedForm(error, form, MANIFEST_FIELDS);
      if (manifestForm === undefined) throw error;
      return show(await pageFor(actor, { manifestForm }), refusalStatus(error));
    }
  });

  pages.get(MANIFEST_CALLBACK_PATH, "admin", async ({ actor, query, redirect }) => {
    await manifestFlow.finish(actor, { code: query["code"], state: query["state"] });
    return redirect("/admin/apps?done=created#done");
  });

  pages.post("/admin/apps/:id/check", "admin", async ({ actor, id, show }) =>
    show(await pageFor(actor, { checked: await apps.check(actor, id) })),
  );

  pages.post("/admin/apps/:id/default", "admin", async ({ actor, id, redirect }) => {
    await apps.update(actor, id, { is_default: true });
    return redirect("/admin/apps?done=default#done");
  });

  pages.get("/admin/apps/:id/remove", "admin", async ({ actor, id, show }) =>
    show(removeAppPage(await apps.get(actor, id))),
  );

  pages.post("/admin/apps/:id/remove", "admin", async ({ actor, id, redirect }) => {
    await apps.remove(actor, id);
    return redirect("/admin/apps?done=removed#done");
  });
}
