import { html, sentence, type Html } from "@devplat/web-kit";
import { Hono, type Context } from "hono";
import { storePath } from "../../../../secrets/url-path.ts";
import { ConnectionError } from "../../../forwards/openssh/failure.ts";
import type { RemoteControl } from "../../../forwards/remote-control.ts";
import type { Environment } from "../../../http-api/environment.ts";
import { PROBLEMS, PROBLEM_TYPES, type ProblemCode } from "../../../http-api/problems/problem.ts";
import { remoteProblem } from "../../../http-api/problems/remote-problem.ts";
import { pathOf } from "../../../http-api/request-checks.ts";
import type { RemoteView } from "../../../../remote-view.ts";
import { announcementText, type Announcement } from "../../pages/announcements.ts";
import { keyPage, type ConfirmedKey } from "../../pages/remotes/key-page.ts";
import { LATE_ANSWER } from "../../pages/remotes/lent-tokens-card.ts";
import { REMOTES_PREFIX, remoteUrl } from "../../pages/remotes/links.ts";
import { remoteError } from "../../pages/remotes/remote-state.ts";
import { remotePage, type RemotePageModel } from "../../pages/remotes/remote-page.ts";
import { NOTHING_TYPED, remotesPage } from "../../pages/remotes/remotes-page.ts";
import {
  changedSettings,
  hostFaults,
  NEW_REMOTE_FORM,
  packForm,
  sentForm,
  unpackForm,
} from "../../state/remote-form.ts";
import { problemResponse } from "../responses.ts";
import type { RouteParts } from "../route-parts.ts";

type Ctx = Context<Environment>;
type Answer = Response | Promise<Response>;

/** Pages below /ui/remotes/. Access was checked before. They work without scripts. */
export function remoteRoutes(parts: RouteParts): Hono<Environment> {
  const { view, assets, remotes, logger } = parts;
  const app = new Hono<Environment>();
  const note = (host: string, action: string): void => logger.info({ host, by: "page" }, action);

  app.get("/ui/remotes", (c) => c.redirect(REMOTES_PREFIX, 303));
  app.get(REMOTES_PREFIX, (c) => {
    const form = c.req.query("add") === undefined ? undefined : NOTHING_TYPED;
    return showAll(c, { add: form, announcement: announcementText(c.req.query("done")) });
  });
  app.post(REMOTES_PREFIX, async (c) => {
    if (remotes === undefined) return await problemResponse(c, parts, PROBLEMS.noRemotes);
    return await add(c, remotes, new URLSearchParams(await c.req.text()));
  });

  app.get(`${REMOTES_PREFIX}*`, (c) => {
    const remote = find(c);
    if (remote === undefined) return problemResponse(c, parts, PROBLEMS.noRemote);
    if (!c.req.path.endsWith("/")) return c.redirect(remoteUrl(remote.host), 303);
    return showOne(c, { remote, announcement: announcementText(c.req.query("done")) });
  });
  app.post(`${REMOTES_PREFIX}*`, async (c) => {
    const remote = find(c);
    if (remotes === undefined || remote === undefined)
      return await problemResponse(c, parts, PROBLEMS.noRemote);
    const form = new URLSearchParams(await c.req.text());
    try {
      return await act(c, remotes, remote, form);
    } catch (error) {
      const refused = refusalOf(error);
      if (refused.status === 404) return await problemResponse(c, parts, PROBLEMS.noRemote);
      return await showOne(c, { remote, refusal: refused.words }, refused.status);
    }
  });

  function act(c: Ctx, control: RemoteControl, remote: RemoteView, form: URLSearchParams): Answer {
    const { host } = remote;
    const done = (name: Announcement, action: string): Response => {
      note(host, action);
      return c.redirect(`${remoteUrl(host)}?done=${name}`, 303);
    };
    const late = (): Answer => showOne(c, { remote, refusal: html`${LATE_ANSWER}` }, 409);
    switch (form.get("action")) {
      case "save":
        return save(c, control, remote, form);
      case "enable":
        return control.edit(host, { enabled: true }).then(() => done("remote_enabled", "remote enabled"));
      case "disable":
        return control.edit(host, { enabled: false }).then(() => done("remote_disabled", "remote disabled"));
      case "retry":
        control.retry(host);
        return done("remote_retried", "remote is tried again");
      case "revoke":
        return control.revoke(host).then(() => done("tokens_revoked", "tokens of a remote revoked"));
      case "allow":
        return control.consent(host, true) ? done("consent_given", "token for a remote allowed") : late();
      case "refuse":
        return control.consent(host, false) ? done("consent_refused", "token for a remote refused") : late();
      case "repin":
        return repin(c, control, host, form);
      case "delete":
        return control.remove(host).then(() => {
          note(host, "remote removed");
          return c.redirect(`${REMOTES_PREFIX}?done=remote_deleted`, 303);
        });
      default:
        return showOne(c, { remote, refusal: html`Not done: the form does not say what to do.` }, 422);
    }
  }

  async function save(
    c: Ctx,
    control: RemoteControl,
    remote: RemoteView,
    fields: URLSearchParams,
  ): Promise<Response> {
    const form = sentForm(fields);
    const { edit, faults } = changedSettings(form, unpackForm(fields.get("before")) ?? NEW_REMOTE_FORM);
    const refused = { form, faults };
    if (faults.size > 0) {
      return await showOne(c, { remote, refused, refusal: html`Not saved. See below.` }, 422);
    }
    if (Object.keys(edit).length === 0)
      return c.redirect(`${remoteUrl(remote.host)}?done=remote_unchanged`, 303);
    try {
      await control.edit(remote.host, edit);
    } catch (error) {
      const { status, words } = refusalOf(error);
      if (status === 404) throw error;
      return await showOne(c, { remote, refused, refusal: words }, status);
    }
    note(remote.host, "remote changed");
    return c.redirect(`${remoteUrl(remote.host)}?done=remote_saved`, 303);
  }

  async function repin(
    c: Ctx,
    control: RemoteControl,
    host: string,
    form: URLSearchParams,
  ): Promise<Response> {
    const confirmed = confirmedKeys(form);
    const accepted = confirmed.map(({ fingerprint }) => fingerprint);
    const outcome = await control.repin(host, accepted, c.req.raw.signal);
    if (outcome.state === "saved") {
      note(host, "host key of a remote pinned");
      return c.redirect(`${remoteUrl(host)}?done=host_key_pinned`, 303);
    }
    const { offered } = outcome;
    const fields = { action: "repin", ...nextStep(offered.host, confirmed) };
    return await c.html(keyPage(assets, view.status(), { host, offered, confirmed, fields, isRepin: true }));
  }

  async function add(c: Ctx, control: RemoteControl, fields: URLSearchParams): Promise<Response> {
    const host = (fields.get("host") ?? "").trim();
    // The step of the key sends the form back as one text.
    const form = unpackForm(fields.get("form")) ?? sentForm(fields);
    const { edit: settings, faults: typed } = changedSettings(form, NEW_REMOTE_FORM);
    const faults = new Map([...typed, ...hostFaults(host)]);
    if (faults.size > 0) return await showAll(c, { add: { host, form, faults } }, 422);
    const confirmed = confirmedKeys(fields);
    const accepted = confirmed.map(({ fingerprint }) => fingerprint);
    const force = fields.get("action") === "force";
    try {
      const remote = { host, settings, hostKey: undefined, accepted, force };
      const outcome = await control.add(remote, c.req.raw.signal);
      if (outcome.state === "saved") {
        note(host, "remote added");
        return c.redirect(`${remoteUrl(outcome.remote.host)}?done=remote_added`, 303);
      }
      const { offered } = outcome;
      const again = { action: "add", host, form: packForm(form), ...nextStep(offered.host, confirmed) };
      const model = { host, offered, confirmed, fields: again, isRepin: false };
      return await c.html(keyPage(assets, view.status(), model));
    } catch (error) {
      const { status, words } = refusalOf(error, host);
      if (status === 404) throw error;
      const mayForce = error instanceof ConnectionError;
      return await showAll(c, { add: { host, form, faults, refusal: words, mayForce } }, status);
    }
  }

  function showAll(
    c: Ctx,
    options: Parameters<typeof remotesPage>[3],
    status: 200 | 409 | 422 = 200,
  ): Answer {
    if (remotes === undefined) return problemResponse(c, parts, PROBLEMS.noRemotes);
    const model = { remotes: remotes.list(), fileProblem: remotes.fileProblem() };
    const daemon = view.status();
    return c.html(remotesPage(assets, daemon, { ...model, peers: daemon.peers }, options), status);
  }

  function showOne(
    c: Ctx,
    model: Omit<RemotePageModel, "fileProblem">,
    status: 200 | 409 | 422 = 200,
  ): Answer {
    // The state after the failed action.
    const remote = remotes?.list().find(({ host }) => host === model.remote.host) ?? model.remote;
    const page = { ...model, remote, fileProblem: remotes?.fileProblem() };
    return c.html(remotePage(assets, view.status(), page), status);
  }

  /** The remote that a path names. */
  function find(c: Ctx): RemoteView | undefined {
    const name = storePath(pathOf(c.env.incoming), REMOTES_PREFIX)?.replace(/\/$/, "").toLowerCase();
    return remotes?.list().find(({ host }) => host.toLowerCase() === name);
  }
  return app;
}

/** Fields by which the next step knows what was confirmed before it. */
function nextStep(host: string, confirmed: readonly ConfirmedKey[]): Readonly<Record<string, string>> {
  return {
    "confirm-host": host,
    confirmed: confirmed.map((key) => `${key.host} ${key.fingerprint}`).join("\n"),
  };
}

/** The keys that a person has confirmed in this form and in the steps before it. */
function confirmedKeys(form: URLSearchParams): ConfirmedKey[] {
  const before = (form.get("confirmed") ?? "").split(/\r?\n/).flatMap((line) => {
    const [host, fingerprint] = line.split(" ");
    return host === undefined || fingerprint === undefined ? [] : [{ host, fingerprint }];
  });
  const fingerprint = form.get("confirm");
  return fingerprint === null ? before : [...before, { host: form.get("confirm-host") ?? "", fingerprint }];
}

/**
 * Words for an action that has failed, and the status of its page. Rethrows errors that are not about remotes.
 * @param added host of a remote that was to be added
 */
function refusalOf(
  error: unknown,
  added?: string,
): { readonly words: Html; readonly status: 404 | 409 | 422 } {
  const refused = remoteProblem(error);
  if (refused === undefined) throw error;
  const { detail, hint = "", code } = refused.problem;
  const status = statusOf(code);
  if (error instanceof ConnectionError) {
    const { failure } = error;
    const words = html`<p>${added === undefined ? "Not done" : `Not added: cannot connect to ${added}`}.</p>
      ${remoteError({ class: failure.class, message: failure.message, advice: hint })}`;
    return { words, status };
  }
  const link =
    code === "host_exists" && added !== undefined
      ? html` <a href="${remoteUrl(added)}">Show ${added}</a>`
      : "";
  const words = html`<p>Not done: ${detail}${link}</p>
    ${hint === "" ? "" : html`<p class="small">${sentence(hint)}</p>`}`;
  return { words, status };
}

function statusOf(code: ProblemCode): 404 | 409 | 422 {
  const { status } = PROBLEM_TYPES[code];
  return status === 404 || status === 409 ? status : 422;
}
