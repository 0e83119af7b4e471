import { Secret } from "@devplat/base";
import { Hono, type Context } from "hono";
import type { Environment } from "../../http-api/environment.ts";
import { PROBLEMS } from "../../http-api/problems/problem.ts";
import { AgentError, publicMessage } from "../../../errors.ts";
import { storePath } from "../../../secrets/url-path.ts";
import { isFromOwnPage, pathOf } from "../../http-api/request-checks.ts";
import { problemResponse } from "./responses.ts";
import { enrolmentViews } from "./enrolment-views.ts";
import type { RouteParts } from "./route-parts.ts";
import {
  cardAnchor,
  type CardPlace,
  type EnrolmentView,
  type RefusedAnswer,
} from "../pages/enrolments/card.ts";
import { enrolmentPage, enrolmentsPage } from "../pages/enrolments/enrolments-page.ts";
import { ENROLMENTS_PREFIX, enrolmentUrl } from "../pages/enrolments/links.ts";
import { setupPage } from "../pages/enrolments/setup-page.ts";
import { needingUser } from "../state/setup-state.ts";

type Ctx = Context<Environment>;

/** A step that is done within this time, in milliseconds, is shown as done on the page that follows. */
const SETTLE_MS = 1500;

interface Refusal {
  readonly status: 409 | 422;
  readonly refusal?: string;
  readonly answer?: RefusedAnswer;
}

/** The wizard, and the pages below /ui/enrolments/. They work without scripting. */
export function enrolmentRoutes(parts: RouteParts): Hono<Environment> {
  const { view, accessCheck, assets, enrolments, setup, logger } = parts;
  const app = new Hono<Environment>();

  app.get("/setup", (c) => c.redirect("/setup/", 303));
  app.get("/setup/", (c) => {
    if (!accessCheck.isUnlocked(c.env.incoming) || !view.status().authenticated) return c.redirect("/", 303);
    if (needingUser(enrolments.list()).length === 0) return c.redirect("/ui/", 303);
    return showSetup(c);
  });

  app.post("/setup/complete", async (c) => {
    if (!isFromOwnPage(c.env.incoming)) return await problemResponse(c, parts, PROBLEMS.originRefused);
    if (!accessCheck.isUnlocked(c.env.incoming))
      return await problemResponse(c, parts, PROBLEMS.unlockRequired);
    if (!view.status().authenticated) return await problemResponse(c, parts, PROBLEMS.notSignedIn);
    await setup.leave();
    const running = needingUser(enrolments.list()).filter(({ state }) => state === "running");
    await Promise.all(running.map(({ key }) => enrolments.cancel(key)));
    logger.info({ by: "page" }, "first-run wizard left");
    return c.redirect("/ui/", 303);
  });

  app.get("/ui/enrolments", (c) => c.redirect(ENROLMENTS_PREFIX, 303));
  app.get(ENROLMENTS_PREFIX, (c) => c.html(enrolmentsPage(assets, view.status(), enrolments.list())));

  app.get(`${ENROLMENTS_PREFIX}*`, async (c) => {
    const found = find(c);
    if (found === undefined) return await problemResponse(c, parts, PROBLEMS.noEnrolment);
    if (!c.req.path.endsWith("/")) return c.redirect(enrolmentUrl(found.enrolment), 303);
    return c.html(enrolmentPage(assets, view.status(), { view: found }));
  });

  app.post(`${ENROLMENTS_PREFIX}*`, async (c) => {
    const found = find(c);
    if (found === undefined) return await problemResponse(c, parts, PROBLEMS.noEnrolment);
    const { key } = found.enrolment;
    const form = new URLSearchParams(await c.req.text());
    const place = form.get("from") === "setup" ? "setup" : "page";
    try {
      const refusal = await act(found, form);
      if (refusal !== undefined) return showRefusal(c, key, place, refusal);
      const page = place === "setup" ? "/setup/" : enrolmentUrl(found.enrolment);
      return c.redirect(`${page}#${cardAnchor(find(c) ?? found, place)}`, 303);
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== "enrolment_state") throw error;
      return showRefusal(c, key, place, { status: 409, refusal: `Not done: ${publicMessage(error)}.` });
    }
  });

  async function act(found: EnrolmentView, form: URLSearchParams): Promise<Refusal | undefined> {
    const { key } = found.enrolment;
    switch (form.get("action")) {
      case "start":
        logger.info({ enrolment: key, by: "page" }, "enrolment started");
        void enrolments.start(key).catch(() => undefined);
        await settled(key);
        return undefined;
      case "retry":
        void enrolments.retry(key).catch(() => undefined);
        await settled(key);
        return undefined;
      case "answer":
        return await answer(found, form);
      case "cancel":
        await enrolments.cancel(key);
        return undefined;
      case "skip":
        await enrolments.skip(key);
        logger.info({ enrolment: key, by: "page" }, "enrolment skipped");
        return undefined;
      default:
        return { status: 422, refusal: "Not done: the form does not say what to do. Load the page again." };
    }
  }

  async function answer(
    { enrolment, prompt }: EnrolmentView,
    form: URLSearchParams,
  ): Promise<Refusal | undefined> {
    const fields = prompt.form?.fields ?? [];
    const typed = fields.map((field, at) => ({
      ...field,
      text: form.get(`field.${at}`) ?? "",
      again: form.get(`again.${at}`),
    }));
    const differing = typed.filter(({ confirm, text, again }) => confirm && text !== again);
    const faults =
      differing.length > 0
        ? new Map(differing.map(({ name }) => [name, "the two are not the same"]))
        : enrolments.answer(enrolment.key, new Map(typed.map(({ name, text }) => [name, new Secret(text)])));
    if (faults.size > 0) {
      const shown = typed.filter(({ secret }) => !secret).map(({ name, text }) => [name, text] as const);
      return { status: 422, answer: { faults, values: new Map(shown) } };
    }
    await settled(enrolment.key);
    return undefined;
  }

  /** Waits a short time until an enrolment has ended or needs input. */
  async function settled(key: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      const { visit, form } = enrolments.prompt(key);
      const running = enrolments.list().some((each) => each.key === key && each.state === "running");
      if (!running || visit !== undefined || form !== undefined) resolve();
    };
    const release = enrolments.onChange(look);
    const timer = setTimeout(resolve, SETTLE_MS);
    // An answer is taken up in the turn after this one.
    setImmediate(look);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      release();
    }
  }

  function showRefusal(
    c: Ctx,
    key: string,
    place: CardPlace,
    { status, refusal, answer: answered }: Refusal,
  ): Response | Promise<Response> {
    if (place === "setup") {
      const refused = answered === undefined ? undefined : { key, answer: answered };
      return showSetup(c, status, refusal, refused);
    }
    const found = enrolmentViews(enrolments).find(({ enrolment }) => enrolment.key === key);
    if (found === undefined) return problemResponse(c, parts, PROBLEMS.noEnrolment);
    return c.html(enrolmentPage(assets, view.status(), { view: found, refusal, refused: answered }), status);
  }

  function showSetup(
    c: Ctx,
    status: 200 | 409 | 422 = 200,
    refusal?: string,
    refused?: { key: string; answer: RefusedAnswer },
  ): Response | Promise<Response> {
    const views = enrolmentViews(enrolments).filter(({ enrolment }) => enrolment.interactive);
    return c.html(setupPage(assets, view.status(), { views, refusal, refused }), status);
  }

  /** The enrolment that a path names by engine and key. */
  function find(c: Ctx): EnrolmentView | undefined {
    const path = storePath(pathOf(c.env.incoming), ENROLMENTS_PREFIX)?.replace(/\/$/, "");
    return enrolmentViews(enrolments).find(
      ({ enrolment }) => path === `${enrolment.engine}/${enrolment.key}`,
    );
  }
  return app;
}
