import { Secret, type Clock, type Logger } from "@devplat/base";
import { isOwnOrigin, sessionCookie, type Assets, type Html } from "@devplat/web-kit";
import type { Context, Hono } from "hono";
import { z } from "zod";
import { readForm } from "../admin-api/body.ts";
import {
  changeOf,
  newRepositorySchema,
  purgeRepository,
  removeRepository,
  repositoryChangeSchema,
} from "../admin-api/cached-repos.ts";
import { usernameSchema } from "../admin-api/login.ts";
import { INTERNAL, problemOf } from "../admin-api/problem.ts";
import { requestFacts } from "../admin-api/router.ts";
import { tokenRequestSchema } from "../admin-api/tokens.ts";
import { validateBody } from "../admin-api/validation.ts";
import type { CacheMaintenance } from "../cache/policy.ts";
import type { CachedRepositories } from "../cached-repositories.ts";
import { SESSION_COOKIE, type Authenticator } from "../login/authenticator.ts";
import { SESSION_LIFETIME_MS, type Identity, type Sessions } from "../login/sessions.ts";
import type { TestLogin } from "../login/test-login.ts";
import type { OwnAddress } from "../own-address.ts";
import type { TokenMint } from "../tokens/token-mint.ts";
import { EMPTY_FORM, numberOrNull, refusedForm, type FormState } from "./form.ts";
import { loginPage } from "./login-page.ts";
import { messagePage } from "./message-page.ts";
import {
  deletePage,
  editFormOf,
  repositoriesPage,
  type RepositoriesPageOptions,
} from "./repositories-page.ts";
import { tokensPage, type TokensPageOptions } from "./tokens-page.ts";

export interface AdminUiOptions {
  readonly assets: Assets;
  readonly version: string;
  readonly repositories: CachedRepositories;
  readonly maintenance: CacheMaintenance;
  readonly cacheEnabled: boolean;
  readonly mint: TokenMint;
  readonly authenticator: Authenticator;
  readonly sessions: Sessions;
  /** Undefined: not in development mode. */
  readonly testLogin: TestLogin | undefined;
  readonly address: OwnAddress;
  readonly clock: Clock;
  readonly logger: Logger;
}

type Form = Readonly<Record<string, string>>;
type Handler = (context: Context, identity: Identity, form: Form) => Promise<Response>;

const loginFormSchema = z.strictObject({
  username: usernameSchema,
  role: z.enum(["user", "admin"]),
  host_token: z.string().max(4096),
});

/**
 * The pages under /admin. Plain forms that work without scripting: a post that succeeds redirects (303), one that is
 * refused shows its page again with what was typed. Every post must come from a page of ours.
 */
export function addAdminUi(app: Hono, options: AdminUiOptions): void {
  const { assets, version, repositories, maintenance, address, authenticator, sessions, testLogin } = options;

  const show = async (
    context: Context,
    html: Html,
    status: 200 | 401 | 403 | 404 | 409 | 422 | 500 | 502 = 200,
  ): Promise<Response> => context.html(await html, status);
  const login = async (context: Context, form: FormState, status: 200 | 422): Promise<Response> =>
    show(context, loginPage({ assets, version, form: testLogin === undefined ? undefined : form }), status);
  const say = async (
    context: Context,
    status: 403 | 404 | 500 | 502,
    title: string,
    text: string,
    identity?: Identity,
  ): Promise<Response> => show(context, messagePage({ assets, version, identity, title, text }), status);
  const setCookie = (context: Context, value: string, maxAgeSeconds: number): void =>
    context.header(
      "Set-Cookie",
      sessionCookie({ name: SESSION_COOKIE, value, secure: address.isHttps, maxAgeSeconds }),
    );

  /** Runs a page's handler for whoever is signed in; shows the login page otherwise. */
  const serve = async (context: Context, adminOnly: boolean, handler: Handler): Promise<Response> => {
    try {
      const caller = await authenticator.identify(requestFacts(context));
      if (caller.kind === "refused") return await say(context, 403, "Not allowed", caller.message);
      if (caller.kind === "nobody") {
        return context.req.method === "POST"
          ? context.redirect("/admin", 303)
          : await login(context, EMPTY_FORM, 200);
      }
      const { identity } = caller;
      if (adminOnly && identity.role !== "admin") {
        if (context.req.path === "/admin") return context.redirect("/admin/tokens", 303);
        return await say(context, 403, "Not allowed", "This needs the admin role.", identity);
      }
      const form: Form =
        context.req.method === "POST" && hasBody(context)
          ? Object.fromEntries(await readForm(context.req.raw))
          : {};
      return await handler(context, identity, form);
    } catch (error) {
      const problem = problemOf(error);
      if (problem?.status === 404) return say(context, 404, "Not found", problem.detail);
      if (problem === undefined || problem.status >= 500) {
        options.logger.error({ err: error }, "an administration page failed");
      }
      return say(
        context,
        problem === undefined ? 500 : 502,
        "That did not work",
        (problem ?? INTERNAL).detail,
      );
    }
  };
  const get = (path: string, adminOnly: boolean, handler: Handler): void =>
    void app.get(path, async (context) => serve(context, adminOnly, handler));
  const post = (path: string, adminOnly: boolean, handler: Handler): void =>
    void app.post(path, async (context) => serve(context, adminOnly, handler));

  const repositoriesOptions = (identity: Identity): RepositoriesPageOptions => ({
    assets,
    version,
    identity,
    repositories: repositories.list(),
    maintenance,
    baseUrl: address.baseUrl,
    cacheEnabled: options.cacheEnabled,
    now: options.clock.now(),
  });
  const tokensOptions = async (identity: Identity): Promise<TokensPageOptions> => ({
    assets,
    version,
    identity,
    tokens: await options.mint.list(identity),
    baseUrl: address.baseUrl,
    now: options.clock.now(),
  });

  app.post("/admin/login", async (context) => {
    const facts = requestFacts(context);
    if (testLogin === undefined)
      return say(context, 404, "Not found", "There is no login form in this mode.");
    if (!isOwnOrigin(facts.origin, address.origins(facts.host))) {
      return say(context, 403, "Not allowed", "This form must be sent from its own page.");
    }
    let form: Form = {};
    try {
      form = Object.fromEntries(await readForm(context.req.raw));
      const {
        username,
        role,
        host_token: hostToken,
      } = validateBody(loginFormSchema, {
        role: "user",
        host_token: "",
        ...form,
      });
      const started = await testLogin.logIn({
        username: username.trim(),
        role,
        hostToken: hostToken === "" ? undefined : new Secret(hostToken),
      });
      setCookie(context, started.token.reveal(), SESSION_LIFETIME_MS / 1000);
      return context.redirect("/admin", 303);
    } catch (error) {
      const { host_token: _, ...typed } = form;
      const refused = refusedForm(error, typed, ["username", "role", "host_token"]);
      if (refused !== undefined) return login(context, refused, 422);
      options.logger.error({ err: error }, "a login failed");
      return say(context, 500, "That did not work", (problemOf(error) ?? INTERNAL).detail);
    }
  });

  post("/admin/logout", false, async (context, identity) => {
    await sessions.end(identity.sessionId);
    setCookie(context, "", 0);
    return context.redirect("/admin", 303);
  });

  get("/admin", true, async (context, identity) => {
    const edit = context.req.query("edit");
    const record = edit === undefined ? undefined : repositories.list().find(({ id }) => id === edit);
    return show(
      context,
      repositoriesPage({
        ...repositoriesOptions(identity),
        done: context.req.query("done"),
        editing: record === undefined ? undefined : { id: record.id, form: editFormOf(record) },
      }),
    );
  });

  post("/admin/repositories", true, async (context, identity, form) => {
    try {
      const body = validateBody(newRepositorySchema, {
        owner: (form["owner"] ?? "").trim(),
        name: (form["name"] ?? "").trim(),
        timeout_seconds: numberOrNull(form["timeout_seconds"]),
        max_cache_size_mb: numberOrNull(form["max_cache_size_mb"]),
      });
      await repositories.add({
        owner: body.owner,
        name: body.name,
        enabled: true,
        timeoutSeconds: body.timeout_seconds ?? undefined,
        maxCacheSizeMb: body.max_cache_size_mb ?? undefined,
      });
      return context.redirect("/admin?done=added", 303);
    } catch (error) {
      const addForm = refusedForm(error, form, ["owner", "name", "timeout_seconds", "max_cache_size_mb"]);
      if (addForm === undefined) throw error;
      return show(context, repositoriesPage({ ...repositoriesOptions(identity), addForm }), statusOf(error));
    }
  });

  post("/admin/repositories/:id", true, async (context, identity, form) => {
    const id = context.req.param("id") ?? "";
    try {
      const body = validateBody(repositoryChangeSchema, {
        timeout_seconds: numberOrNull(form["timeout_seconds"]),
        max_cache_size_mb: numberOrNull(form["max_cache_size_mb"]),
      });
      await repositories.change(id, changeOf(body), Number(form["version"]) || undefined);
      return context.redirect("/admin?done=saved", 303);
    } catch (error) {
      const refused = refusedForm(error, form, ["timeout_seconds", "max_cache_size_mb"]);
      if (refused === undefined) throw error;
      const page = repositoriesPage({ ...repositoriesOptions(identity), editing: { id, form: refused } });
      return show(context, page, statusOf(error));
    }
  });

  for (const [word, enabled] of [
    ["enable", true],
    ["disable", false],
  ] as const) {
    post(`/admin/repositories/:id/${word}`, true, async (context) => {
      await repositories.change(context.req.param("id") ?? "", { enabled });
      return context.redirect(`/admin?done=${word}d`, 303);
    });
  }

  post("/admin/repositories/:id/purge", true, async (context) => {
    purgeRepository(options, repositories.get(context.req.param("id") ?? ""));
    return context.redirect("/admin?done=purged", 303);
  });

  get("/admin/repositories/:id/delete", true, async (context, identity) => {
    const record = repositories.get(context.req.param("id") ?? "");
    return show(context, deletePage({ ...repositoriesOptions(identity), record }));
  });

  post("/admin/repositories/:id/delete", true, async (context) => {
    await removeRepository(options, context.req.param("id") ?? "");
    return context.redirect("/admin?done=deleted", 303);
  });

  get("/admin/tokens", false, async (context, identity) =>
    show(context, tokensPage({ ...(await tokensOptions(identity)), done: context.req.query("done") })),
  );

  post("/admin/tokens", false, async (context, identity, form) => {
    try {
      const body = validateBody(tokenRequestSchema, {
        repository: (form["repository"] ?? "").trim(),
        scopes: form["scopes"] ?? "",
        duration: form["duration"] ?? "",
        ...((form["description"] ?? "").trim() === "" ? {} : { description: form["description"]?.trim() }),
      });
      const { token, record } = await options.mint.mint(
        identity,
        { ...body, type: "proxy", ip_allow: [] },
        true,
      );
      const minted = { value: token.reveal(), repository: record.repositories[0] ?? "" };
      // No redirect: the value must not be in an address, and this page is the only one that has it.
      return await show(context, tokensPage({ ...(await tokensOptions(identity)), minted }));
    } catch (error) {
      const refused = refusedForm(error, form, ["repository", "scopes", "duration", "description"]);
      if (refused === undefined) throw error;
      return show(
        context,
        tokensPage({ ...(await tokensOptions(identity)), form: refused }),
        statusOf(error),
      );
    }
  });

  // A page that answered a post, loaded again.
  get("/admin/login", false, async (context) => context.redirect("/admin", 303));
  get("/admin/repositories", true, async (context) => context.redirect("/admin", 303));
  get("/admin/repositories/:id", true, async (context) => {
    const { id } = repositories.get(context.req.param("id") ?? "");
    return context.redirect(`/admin?edit=${id}`, 303);
  });
  get("/ui", false, async (context) => context.redirect("/admin/tokens", 303));

  post("/admin/tokens/:id/revoke", false, async (context, identity) => {
    await options.mint.revoke(identity, context.req.param("id") ?? "");
    return context.redirect("/admin/tokens?done=revoked", 303);
  });

  get("/admin/*", false, async (context, identity) =>
    say(context, 404, "Not found", "No page has this address.", identity),
  );
}

function hasBody(context: Context): boolean {
  return (
    (context.req.header("content-length") ?? "0") !== "0" ||
    context.req.header("transfer-encoding") !== undefined
  );
}

function statusOf(error: unknown): 409 | 422 | 502 {
  const status = problemOf(error)?.status;
  if (status === 409 || status === 412) return 409;
  return status === 502 ? 502 : 422;
}
