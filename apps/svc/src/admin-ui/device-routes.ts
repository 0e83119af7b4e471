import type { Identity } from "../identity/principal.ts";
import type { Clock } from "@devplat/base";
import type { Assets } from "@devplat/web-kit";
import { clientOf } from "../http/request/management-client.ts";
import { DEVICE_PAGE_PATH } from "../admin-api/device.ts";
import { SvcError } from "../errors.ts";
import type { DeviceFlow } from "../identity/login/device-flow.ts";
import type { LoginLimits } from "../identity/login/login-limits.ts";
import { devicePage, type DevicePageOptions } from "./device-page.ts";
import type { Pages } from "./pages.ts";

export interface DeviceRoutes {
  readonly pages: Pages;
  readonly assets: Assets;
  readonly version: string;
  readonly deviceFlow: DeviceFlow;
  readonly limits: LoginLimits;
  readonly clock: Clock;
}

const UNKNOWN = "no program waits under this code, or its time is over";

/** The approval page of the device flow. */
export function addDeviceRoutes({ pages, assets, version, deviceFlow, limits, clock }: DeviceRoutes): void {
  const page = (identity: Identity, state: DevicePageOptions["state"]) =>
    devicePage({ assets, version, identity, now: clock.now(), state });

  pages.get(DEVICE_PAGE_PATH, false, async (context, identity) => {
    const typed = context.req.query("user_code") ?? "";
    if (typed === "") return pages.show(context, page(identity, { kind: "ask", typed, fault: undefined }));
    limits.userCode(identity.userId, clientOf(context).address);
    const request = await deviceFlow.find(typed);
    return request === undefined
      ? pages.show(context, page(identity, { kind: "ask", typed, fault: UNKNOWN }), 404)
      : pages.show(context, page(identity, { kind: "confirm", request }));
  });

  pages.post(DEVICE_PAGE_PATH, false, async (context, identity, form) => {
    const typed = form["user_code"] ?? "";
    const client = clientOf(context);
    limits.userCode(identity.userId, client.address);
    try {
      // Whatever is not the word for yes is no.
      const answer = form["decision"] !== "approve" ? "deny" : form["role"] === "admin" ? "admin" : "user";
      const { clientId } = await deviceFlow.decide(typed, identity, answer, client);
      return await pages.show(
        context,
        page(identity, { kind: "decided", approved: answer !== "deny", clientId }),
      );
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "not_found") throw error;
      return pages.show(context, page(identity, { kind: "ask", typed, fault: UNKNOWN }), 404);
    }
  });
}
