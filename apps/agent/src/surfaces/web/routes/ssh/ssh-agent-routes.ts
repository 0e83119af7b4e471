import { Secret } from "@devplat/base";
import { sentence } from "@devplat/web-kit";
import { Hono, type Context } from "hono";
import { publicMessage } from "../../../../errors.ts";
import type { SshAgentIdentityView } from "../../../../ssh-agent-view.ts";
import type { Environment } from "../../../http-api/environment.ts";
import { PROBLEMS } from "../../../http-api/problems/problem.ts";
import { AgentRefusal } from "../../../ssh-agent/agent-refusal.ts";
import type { SshAgentControl } from "../../../ssh-agent/ssh-agent-control.ts";
import { announcementText, type Announcement } from "../../pages/announcements.ts";
import { AGENT_PAGE } from "../../pages/ssh-agent/links.ts";
import { sshAgentPage, type SshAgentPageModel } from "../../pages/ssh-agent/ssh-agent-page.ts";
import { problemResponse } from "../responses.ts";
import type { RouteParts } from "../route-parts.ts";

type Ctx = Context<Environment>;
type Answer = Response | Promise<Response>;

const ANSWERED = "Nothing waits for this answer any more. It was given elsewhere, or too late.";

/** The page of the SSH agent. Access was checked before. It works without scripts. */
export function sshAgentRoutes(parts: RouteParts): Hono<Environment> {
  const { view, assets, sshAgent, logger } = parts;
  const app = new Hono<Environment>();

  app.get("/ui/agent", (c) => c.redirect(AGENT_PAGE, 303));
  app.get(AGENT_PAGE, (c) => {
    const key = find(sshAgent(), c.req.query("unlock"));
    const locked = key?.state === "needs-passphrase" ? key : undefined;
    return show(c, { announcement: announcementText(c.req.query("done")), unlock: locked });
  });

  app.post(AGENT_PAGE, async (c) => {
    const agent = sshAgent();
    if (agent === undefined) return await problemResponse(c, parts, PROBLEMS.noSshAgent);
    return await act(c, agent, new URLSearchParams(await c.req.text()));
  });

  async function act(c: Ctx, agent: SshAgentControl, form: URLSearchParams): Promise<Response> {
    const passphrase = new Secret(form.get("passphrase") ?? "");
    switch (form.get("action")) {
      case "refresh":
        await agent.refresh(c.req.raw.signal);
        return done(c, "keys_refreshed");
      case "show":
        agent.showKeys();
        logger.info({ by: "page" }, "hidden SSH keys are shown again");
        return done(c, "keys_shown");
      case "allow":
        return await answer(c, agent, form, { confirmed: true });
      case "refuse":
        return await answer(c, agent, form, { confirmed: false });
      case "passphrase":
        return await answer(c, agent, form, { passphrase });
      case "unlock":
        return await unlock(c, agent, form.get("fingerprint") ?? "", passphrase);
      default:
        return await show(c, { refusal: "Not done: the form does not say what to do." }, 422);
    }
  }

  function answer(
    c: Ctx,
    agent: SshAgentControl,
    form: URLSearchParams,
    given: Parameters<SshAgentControl["answer"]>[1],
  ): Answer {
    if (!agent.answer(form.get("question") ?? "", given)) return show(c, { refusal: ANSWERED }, 409);
    const isRefused = "confirmed" in given && !given.confirmed;
    return done(c, isRefused ? "answer_refused" : "answer_given");
  }

  async function unlock(
    c: Ctx,
    agent: SshAgentControl,
    fingerprint: string,
    passphrase: Secret,
  ): Promise<Response> {
    try {
      await agent.unlockKey(fingerprint, passphrase);
    } catch (error) {
      if (!(error instanceof AgentRefusal)) throw error;
      const reason = sentence(publicMessage(error));
      const key = find(agent, fingerprint);
      if (error.code !== "passphrase_wrong" || key === undefined)
        return await show(c, { refusal: `Not unlocked: ${reason}` }, 422);
      return await show(c, { unlock: { ...key, fault: reason } }, 422);
    }
    logger.info({ fingerprint, by: "page" }, "SSH key unlocked");
    return done(c, "key_unlocked");
  }

  function done(c: Ctx, name: Announcement): Response {
    return c.redirect(`${AGENT_PAGE}?done=${name}`, 303);
  }

  function show(c: Ctx, model: Omit<SshAgentPageModel, "agent">, status: 200 | 409 | 422 = 200): Answer {
    return c.html(sshAgentPage(assets, view.status(), { ...model, agent: sshAgent()?.status() }), status);
  }
  return app;
}

function find(
  agent: SshAgentControl | undefined,
  fingerprint: string | undefined,
): SshAgentIdentityView | undefined {
  const identities = agent?.status().sources.flatMap((source) => source.identities);
  return identities?.find((each) => each.fingerprint === fingerprint);
}
