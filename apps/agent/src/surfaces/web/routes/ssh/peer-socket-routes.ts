import { Hono } from "hono";
import type { Environment } from "../../../http-api/environment.ts";
import { PROBLEMS } from "../../../http-api/problems/problem.ts";
import { announcementText } from "../../pages/announcements.ts";
import { LATE_ANSWER } from "../../pages/remotes/lent-tokens-card.ts";
import { PEER_SOCKET_PAGE } from "../../pages/remotes/links.ts";
import { peerSocketPage } from "../../pages/remotes/peer-socket-page.ts";
import { problemResponse } from "../responses.ts";
import type { RouteParts } from "../route-parts.ts";

/** The page of the peer socket. Access was checked before. It works without scripts. */
export function peerSocketRoutes(parts: RouteParts): Hono<Environment> {
  const { view, assets, peerLoan, logger } = parts;
  const app = new Hono<Environment>();

  app.get(PEER_SOCKET_PAGE, (c) => {
    const announcement = announcementText(c.req.query("done"));
    return c.html(peerSocketPage(assets, view.status(), { announcement }));
  });
  app.post(PEER_SOCKET_PAGE, async (c) => {
    if (peerLoan === undefined) return await problemResponse(c, parts, PROBLEMS.noPeerSocket);
    const action = new URLSearchParams(await c.req.text()).get("action");
    if (action === "revoke") {
      await peerLoan.revoke();
      logger.info({ by: "page" }, "tokens lent over the peer socket revoked");
      return c.redirect(`${PEER_SOCKET_PAGE}?done=tokens_revoked`, 303);
    }
    const isAnswer = action === "allow" || action === "refuse";
    if (!isAnswer || !peerLoan.consent(action === "allow")) {
      const refusal = isAnswer ? LATE_ANSWER : "Not done: the form does not say what to do.";
      return c.html(peerSocketPage(assets, view.status(), { refusal }), isAnswer ? 409 : 422);
    }
    const done = action === "allow" ? "consent_given" : "consent_refused";
    return c.redirect(`${PEER_SOCKET_PAGE}?done=${done}`, 303);
  });
  return app;
}
