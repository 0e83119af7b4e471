import { Hono, type Context, type MiddlewareHandler } from "hono";
import type { RemoteControl, RemoteEdit } from "../forwards/remote-control.ts";
import {
  acceptedOf,
  consentBody,
  emptyBody,
  newRemoteBody,
  remoteEditBody,
  repinBody,
} from "../forwards/remote-request.ts";
import type { ApiParts, Environment } from "./environment.ts";
import { BodyFault, jsonBody, smallBodyLimit } from "./json-body.ts";
import { problemResponse } from "./problem-response.ts";
import { PROBLEMS } from "./problems/problem.ts";
import { remoteProblem, unconfirmedKeyProblem } from "./problems/remote-problem.ts";

const REMOTES = "/api/v1/ssh/remotes";
const REMOTE = `${REMOTES}/:host`;

/**
 * Managed SSH forwards over the JSON API. They need no store token: only lending one does. Hosts are compared without case.
 *
 * @param mutation checks before every change (CSRF token)
 */
export function remoteRoutes(
  { remotes, surface, logger }: Pick<ApiParts, "remotes" | "surface" | "logger">,
  mutation: MiddlewareHandler<Environment>,
): Hono<Environment> {
  const app = new Hono<Environment>();
  const limit = smallBodyLimit();
  const control = (): RemoteControl => {
    if (remotes === undefined) throw new BodyFault(PROBLEMS.noRemotes);
    return remotes;
  };
  const note = (host: string, action: string): void => logger.info({ host, by: surface }, action);

  app.get(REMOTES, (c) => {
    const all = control();
    return c.json({ remotes: all.list(), file_problem: all.fileProblem() ?? null });
  });

  app.post(REMOTES, limit, mutation, async (c) => {
    const {
      host,
      host_key,
      accept_fingerprint,
      force = false,
      ...settings
    } = await jsonBody(c, newRemoteBody);
    const added = await control().add(
      {
        host,
        settings: settings as RemoteEdit,
        hostKey: host_key,
        accepted: acceptedOf(accept_fingerprint),
        force,
      },
      c.req.raw.signal,
    );
    if (added.state === "unconfirmed") return unconfirmed(c, added.offered);
    note(host, "remote added");
    return c.json(added.remote, 201);
  });

  app.patch(REMOTE, limit, mutation, async (c) => {
    const settings = await jsonBody(c, remoteEditBody);
    const host = c.req.param("host");
    const remote = await control().edit(host, settings as RemoteEdit);
    note(host, "remote changed");
    return c.json(remote);
  });

  app.delete(REMOTE, limit, mutation, async (c) => {
    const host = c.req.param("host");
    await control().remove(host);
    note(host, "remote removed");
    return c.body(null, 204);
  });

  app.post(`${REMOTE}/host-key`, limit, mutation, async (c) => {
    const { accept_fingerprint } = await jsonBody(c, repinBody, {});
    const host = c.req.param("host");
    const pinned = await control().repin(host, acceptedOf(accept_fingerprint), c.req.raw.signal);
    if (pinned.state === "unconfirmed") return unconfirmed(c, pinned.offered);
    note(host, "host key of a remote pinned");
    return c.json(pinned.remote);
  });

  app.post(`${REMOTE}/retry`, limit, mutation, async (c) => {
    await jsonBody(c, emptyBody, {});
    control().retry(c.req.param("host"));
    return c.json({ status: "retrying" }, 202);
  });

  app.post(`${REMOTE}/revoke`, limit, mutation, async (c) => {
    await jsonBody(c, emptyBody, {});
    const host = c.req.param("host");
    await control().revoke(host);
    note(host, "tokens lent to a remote revoked");
    return c.body(null, 204);
  });

  app.post(`${REMOTE}/consent`, limit, mutation, async (c) => {
    const { allowed } = await jsonBody(c, consentBody);
    const host = c.req.param("host");
    if (!control().consent(host, allowed)) return problemResponse(c, PROBLEMS.noConsentWanted);
    note(host, allowed ? "lending to a remote allowed" : "lending to a remote refused");
    return c.body(null, 204);
  });

  app.onError((error, c) => {
    if (error instanceof BodyFault) return problemResponse(c, error.problem);
    const found = remoteProblem(error);
    if (found === undefined) throw error;
    logger.debug({ err: error }, "a request for remotes was refused");
    return problemResponse(c, found.problem, found.extensions);
  });
  return app;
}

function unconfirmed(
  c: Context<Environment>,
  offered: Parameters<typeof unconfirmedKeyProblem>[0],
): Response {
  const { problem, extensions } = unconfirmedKeyProblem(offered);
  return problemResponse(c, problem, extensions);
}
