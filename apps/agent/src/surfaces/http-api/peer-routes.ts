import { isLoopbackHost } from "@devplat/web-kit";
import { Hono } from "hono";
import { ACTION_KINDS, type ActionKind } from "../../config/sections/action-kinds.ts";
import { actionPath, parseAction } from "../peer-actions/action.ts";
import { failureOf } from "../peer-actions/failure.ts";
import { MAX_FORM_BYTES, isForm, parseForm } from "../peer-actions/form.ts";
import type { LocalActions } from "../peer-actions/local-actions.ts";
import { refuseLargeBody } from "./refuse-large-body.ts";
import { problemResponse } from "./problem-response.ts";
import type { ApiParts, Environment } from "./environment.ts";
import { PROBLEMS } from "./problems/problem.ts";

/** Response to an action that was done. */
const DONE: Readonly<Record<ActionKind, string>> = {
  browse: "opened",
  notify: "raised",
  clipboard: "copied",
};

/** Parts of the peer actions. */
export interface PeerRouteParts extends Pick<ApiParts, "accessCheck" | "origin"> {
  readonly actions: LocalActions;
  /** The surface, for the log. */
  readonly surface: string;
}

/**
 * The peer actions: form posts without a CSRF token, guarded by their Origin instead. The query is never looked at.
 * @param kinds what is offered here; the rest is not found
 */
export function peerRoutes(
  parts: PeerRouteParts,
  kinds: readonly ActionKind[] = ACTION_KINDS,
): Hono<Environment> {
  const { actions, accessCheck, surface } = parts;
  const app = new Hono<Environment>();
  const limit = refuseLargeBody(MAX_FORM_BYTES, (c) => problemResponse(c, PROBLEMS.formTooLarge));
  for (const kind of kinds) {
    app.post(actionPath(kind), limit, async (c) => {
      if (!isOriginAccepted(parts, c.req.header("Origin"), c.req.header("Sec-Fetch-Site")))
        return problemResponse(c, PROBLEMS.originRefused);
      if (!accessCheck.isUnlocked(c.env.incoming)) return problemResponse(c, PROBLEMS.unlockRequired);
      if (!isForm(c.req.header("Content-Type"))) return problemResponse(c, PROBLEMS.notForm);
      const fields = parseForm(new Uint8Array(await c.req.arrayBuffer()));
      if (fields === undefined) return problemResponse(c, PROBLEMS.unreadableForm);
      const parsed = parseAction(kind, fields);
      if ("fault" in parsed) {
        const detail = `The request was refused: ${parsed.fault}.`;
        return problemResponse(c, { detail, code: "bad_request" });
      }
      const outcome = await actions.perform(parsed.action, surface);
      if (outcome === "done") return c.json({ status: DONE[kind] });
      if (outcome === "busy") return problemResponse(c, PROBLEMS.busy);
      const { message, hint } = failureOf(kind, outcome);
      const detail = `Not done here: ${message}.`;
      return problemResponse(c, { detail, code: "action_failed", hint });
    });
  }
  return app;
}

/**
 * A program sends no Origin. A page must be ours: any loopback name, with the port of our own listener. No page reaches
 * a socket, so that there every Origin is foreign.
 */
function isOriginAccepted(
  { origin }: Pick<PeerRouteParts, "origin">,
  given: string | undefined,
  fetchSite: string | undefined,
): boolean {
  // Browsers name the relation of the page also where they send no Origin.
  if (given === undefined) return fetchSite === undefined || ["none", "same-origin"].includes(fetchSite);
  const own = origin();
  const host = /^http:\/\/([^/]+)$/i.exec(given)?.[1];
  if (own === undefined || host === undefined || !isLoopbackHost(host)) return false;
  return URL.parse(given)?.port === new URL(own).port;
}
