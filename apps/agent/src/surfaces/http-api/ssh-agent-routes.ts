import { Secret } from "@devplat/base";
import { Hono, type MiddlewareHandler } from "hono";
import { AgentRefusal } from "../ssh-agent/agent-refusal.ts";
import { emptyBody } from "../forwards/remote-request.ts";
import type { SshAgentControl } from "../ssh-agent/ssh-agent-control.ts";
import { answerBody, unlockBody } from "../ssh-agent/ssh-agent-request.ts";
import type { ApiParts, Environment } from "./environment.ts";
import { BodyFault, jsonBody, smallBodyLimit } from "./json-body.ts";
import { problemResponse } from "./problem-response.ts";
import { PROBLEMS, type Problem, type ProblemCode } from "./problems/problem.ts";

const SSH_AGENT = "/api/v1/ssh-agent";
/** Time limit of a look-up in the store, in milliseconds. */
const REFRESH_LIMIT_MS = 10_000;

const CODES: Readonly<Partial<Record<AgentRefusal["code"], ProblemCode>>> = {
  key_unknown: "key_unknown",
  passphrase_wrong: "passphrase_wrong",
  too_many_tries: "too_many_tries",
};

/**
 * The SSH agent over the JSON API. It needs no store token, because keys that were opened before can be used without one.
 *
 * @param mutation checks before every change (CSRF token)
 */
export function sshAgentRoutes(
  { sshAgent, surface, logger }: Pick<ApiParts, "sshAgent" | "surface" | "logger">,
  mutation: MiddlewareHandler<Environment>,
): Hono<Environment> {
  const app = new Hono<Environment>();
  const limit = smallBodyLimit();
  const control = (): SshAgentControl => {
    const agent = sshAgent();
    if (agent === undefined) throw new BodyFault(PROBLEMS.sshAgentOff);
    return agent;
  };

  app.get(SSH_AGENT, (c) => c.json(control().status()));

  app.post(`${SSH_AGENT}/refresh`, limit, mutation, async (c) => {
    await jsonBody(c, emptyBody, {});
    const agent = control();
    await agent.refresh(AbortSignal.any([c.req.raw.signal, AbortSignal.timeout(REFRESH_LIMIT_MS)]));
    return c.json(agent.status());
  });

  app.post(`${SSH_AGENT}/keys/unlock`, limit, mutation, async (c) => {
    const agent = control();
    const { name, passphrase } = await jsonBody(c, unlockBody);
    if (passphrase === undefined) {
      await agent.findKey(name);
      return c.body(null, 204);
    }
    await agent.unlockKey(name, new Secret(passphrase));
    logger.info({ by: surface }, "key of the SSH agent unlocked");
    return c.body(null, 204);
  });

  app.post(`${SSH_AGENT}/keys/show`, limit, mutation, async (c) => {
    await jsonBody(c, emptyBody, {});
    control().showKeys();
    logger.info({ by: surface }, "keys of the SSH agent shown again");
    return c.body(null, 204);
  });

  app.post(`${SSH_AGENT}/questions/:id`, limit, mutation, async (c) => {
    const agent = control();
    const answer = await jsonBody(c, answerBody);
    const given = "passphrase" in answer ? { passphrase: new Secret(answer.passphrase) } : answer;
    if (!agent.answer(c.req.param("id"), given)) return problemResponse(c, PROBLEMS.noQuestion);
    return c.body(null, 204);
  });

  app.onError((error, c) => {
    if (error instanceof BodyFault) return problemResponse(c, error.problem);
    if (error instanceof AgentRefusal) return problemResponse(c, refusalProblem(error));
    throw error;
  });
  return app;
}

function refusalProblem({ code, message, hint }: AgentRefusal): Problem {
  return {
    code: CODES[code] ?? "key_unusable",
    detail: `${message.charAt(0).toUpperCase()}${message.slice(1)}.`,
    ...(hint !== undefined && { hint }),
  };
}
