import type { Clock } from "@devplat/base";
import { SvcError } from "../../errors.ts";
import { DEVICE_PAGE_PATH, type DeviceFlow } from "../../identity/login/device-flow.ts";
import type { LoginLimits } from "../../identity/login/login-limits.ts";
import type { Identity } from "../../identity/principal.ts";
import { devicePage, type DevicePageOptions } from "./device-page.ts";
import type { Page } from "../common/layout.ts";
import type { Pages } from "../common/pages.ts";

export interface DeviceRoutes {
  readonly pages: Pages;
  readonly deviceFlow: DeviceFlow;
  readonly limits: LoginLimits;
  readonly clock: Clock;
}

const UNKNOWN = "no program waits under this code, or its time is over";

/** The approval page of the device flow. */
export function addDeviceRoutes({ pages, deviceFlow, limits, clock }: DeviceRoutes): void {
  const page = (identity: Identity, state: DevicePageOptions["state"]): Page =>
    devicePage({ identity, now: clock.now(), state });

  pages.get(DEVICE_PAGE_PATH, "user", async ({ actor, query, show }) => {
    const typed = query["user_code"] ?? "";
    if (typed === "") return show(page(actor, { kind: "ask", typed, fault: undefined }));
    limits.userCode(actor.userId, actor.client.address);
    const request = await deviceFlow.find(typed);
    return request === undefined
      ? show(page(actor, { kind: "ask", typed, fault: UNKNOWN }), 404)
      : show(page(actor, { kind: "confirm", request }));
  });

  pages.post(DEVICE_PAGE_PATH, "user", async ({ actor, form, show }) => {
    const typed = form["user_code"] ?? "";
    limits.userCode(actor.userId, actor.client.address);
    try {
      // Every other decision than "approve" denies.
      const decision = form["decision"] !== "approve" ? "deny" : form["role"] === "admin" ? "admin" : "user";
      const { clientId } = await deviceFlow.decide(typed, actor, decision, actor.client);
      return await show(page(actor, { kind: "decided", approved: decision !== "deny", clientId }));
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "not_found") throw error;
      return show(page(actor, { kind: "ask", typed, fault: UNKNOWN }), 404);
    }
  });
}
