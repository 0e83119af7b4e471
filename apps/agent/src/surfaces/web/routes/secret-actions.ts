import { Secret } from "@devplat/base";
import {
  checkPath,
  printJson,
  SecretStoreError,
  type Fields,
  type SecretDocument,
} from "@devplat/secret-store";
import { html } from "@devplat/web-kit";
import type { Context } from "hono";
import { PROBLEMS, type Problem } from "../../http-api/problems/problem.ts";
import type { CopyOutcome } from "../../../desktop/clipboard.ts";
import {
  addField,
  changeField,
  removeField,
  type EditOutcome,
  type EditRefusal,
} from "../../../secrets/edit-fields.ts";
import { textOf } from "../../../secrets/form-text.ts";
import type { SecretEditor } from "../../../secrets/secret-editor.ts";
import { folderOf, lastName, storePath } from "../../../secrets/url-path.ts";
import type { Environment } from "../../http-api/environment.ts";
import { pathOf } from "../../http-api/request-checks.ts";
import { problemResponse, isForPart } from "./responses.ts";
import { isDamaged } from "./draft.ts";
import type { RouteParts } from "./route-parts.ts";
import { announcementText, type Announcement } from "../pages/announcements.ts";
import { mountedPath } from "../pages/mount/mounted-path.ts";
import { SECRETS_PREFIX, fieldName, secretUrl } from "../pages/secrets/links.ts";
import { SecretPages, wholeNumber } from "./secret-pages.ts";

type Ctx = Context<Environment>;

const STALE =
  "Not saved: this secret has changed since the row was opened. The page shows what is stored now; what you typed is lost.";
const BAD_VERSION =
  "Cannot change this secret: the form does not say which version it was made from. Load the page again.";

const EDIT_REFUSALS: Readonly<Record<EditRefusal, Problem>> = {
  name_taken: { code: "exists", detail: "Another field has this name." },
  name_unusable: {
    code: "unusable_field",
    detail:
      "A field name cannot be empty, have a line break or a NUL character, or begin or end with whitespace.",
  },
  text_unusable: {
    code: "unusable_field",
    detail:
      "The text has a character that a page cannot carry, such as the NUL character. It is shown as \u201c\uFFFD\u201d here.",
    hint: "Remove it, or write the secret with the API, which carries it: PUT /api/v1/secrets/{path}.",
  },
  field_missing: { code: "unusable_field", detail: "This field cannot be edited here." },
  last_field: {
    code: "unusable_field",
    detail: "This is the last field. To remove it all, delete the secret.",
  },
};

/**
 * Actions of the forms on secrets' pages. After a change the page is loaded again.
 * @param secrets the secrets for one request, with its limit of time
 */
export function secretActions(parts: RouteParts, secrets: SecretEditor): (c: Ctx) => Promise<Response> {
  const { clipboard, logger } = parts;
  const { store, policy } = secrets;
  const pages = new SecretPages(parts, secrets);

  return async (c) => {
    const path = storePath(pathOf(c.env.incoming), SECRETS_PREFIX);
    if (path === undefined) return await problemResponse(c, parts, PROBLEMS.badEncoding);
    const form = new URLSearchParams(await c.req.text());
    const action = form.get("action");
    if (path === "" || path.endsWith("/")) {
      return action === "new"
        ? await begin(c, path, form)
        : await problemResponse(c, parts, PROBLEMS.notFound);
    }
    checkPath(path);
    if (action === "copy") return await copy(c, path, form);
    if (action === "copy-path") return await copyPath(c, path, form);
    const refusal = policy.refusal(path);
    if (refusal !== undefined) {
      const problem = refusal === "enrolment" ? PROBLEMS.enrolmentOwned : PROBLEMS.notEditable;
      return await problemResponse(c, parts, problem);
    }
    switch (action) {
      case "save":
      case "add":
      case "remove":
      case "restore":
        return await change(c, path, action, form);
      case "delete":
        return await remove(c, path, form);
      default:
        return await problemResponse(c, parts, PROBLEMS.notFound);
    }
  };

  /** New secret: leads to the page of a path that holds nothing, which creates it. */
  async function begin(c: Ctx, folder: string, form: URLSearchParams): Promise<Response> {
    if (!policy.coversFolder(folder)) return await problemResponse(c, parts, PROBLEMS.notEditable);
    const name = form.get("name") ?? "";
    const path = folder + name;
    const refuse = (status: 409 | 422, refusal: string): Promise<Response> =>
      pages.folder(c, folder, { status, refusal, typed: name });
    if (name.includes("/")) return await refuse(422, "A new secret's name is one segment, without a slash.");
    if (!isUsablePath(name)) return await refuse(422, "A secret cannot have this name.");
    if (policy.refusal(path) === "enrolment") return await problemResponse(c, parts, PROBLEMS.enrolmentOwned);
    if ((await read(path)) !== undefined) return await refuse(409, `There is a secret "${name}" already.`);
    return c.redirect(secretUrl(path), 303);
  }

  /** A change of fields, from the version that its row was rendered from. */
  async function change(
    c: Ctx,
    path: string,
    action: "save" | "add" | "remove" | "restore",
    form: URLSearchParams,
  ): Promise<Response> {
    const version = wholeNumber(form.get("version"));
    if (version === undefined)
      return await problemResponse(c, parts, { code: "unusable_field", detail: BAD_VERSION });
    const saved = (): Response => done(c, path, version === 0 ? "created" : undefined);
    const stored = await read(path);
    const stale = async (): Promise<Response> => {
      if (action !== "restore" && (await isSavedAlready(path, version, action, form))) return saved();
      return await pages.secret(c, path, { status: 409, refusal: STALE });
    };
    if (version !== (stored?.version ?? 0)) return await stale();
    if (action === "restore") return await restore(c, path, version, form);
    const outcome = edited(action, stored?.fields ?? new Map(), form);
    if ("refusal" in outcome) return await problemResponse(c, parts, EDIT_REFUSALS[outcome.refusal]);
    return (await write(path, outcome.fields, version)) ? saved() : await stale();
  }

  /** Whether the try before this one was carried out, although its response did not arrive in time. */
  async function isSavedAlready(
    path: string,
    version: number,
    action: "save" | "add" | "remove",
    form: URLSearchParams,
  ): Promise<boolean> {
    if (form.get("again") !== "true") return false;
    const [newest, before] = await Promise.all([read(path), version === 0 ? undefined : read(path, version)]);
    if (newest === undefined || (before === undefined && version !== 0)) return false;
    const outcome = edited(action, before?.fields ?? new Map(), form);
    return "fields" in outcome && isSame(outcome.fields, newest.fields);
  }

  async function restore(c: Ctx, path: string, version: number, form: URLSearchParams): Promise<Response> {
    const from = wholeNumber(form.get("from")) ?? 0;
    if (from === 0) return await pages.secret(c, path, { status: 422, refusal: BAD_VERSION });
    const old = await read(path, from);
    if (old === undefined) {
      return await pages.secret(c, path, {
        status: 409,
        refusal: "Not restored: this version can no longer be read.",
      });
    }
    if (old.fields.size === 0) {
      const refusal = "Not restored: this version has no fields, and a secret needs at least one.";
      return await pages.secret(c, path, { status: 422, refusal });
    }
    if (await write(path, old.fields, version)) return done(c, path, "restored");
    return await pages.secret(c, path, { status: 409, refusal: STALE });
  }

  async function remove(c: Ctx, path: string, form: URLSearchParams): Promise<Response> {
    if (form.get("confirm") !== lastName(path)) {
      const refusal = `Not deleted: the name typed back is not "${lastName(path)}".`;
      return await pages.secret(c, path, { status: 409, refusal });
    }
    await secrets.remove(path, "page");
    const folder = folderOf(path);
    // The folder may not exist after its last secret was removed.
    const left = policy.coversFolder(folder) ? folder : "";
    return c.redirect(`${secretUrl(left)}?done=deleted`, 303);
  }

  /** Puts a value on the clipboard of this host; the browser does not get it. */
  async function copy(c: Ctx, path: string, form: URLSearchParams): Promise<Response> {
    const name = fieldName(form.get("field"));
    const value = name === undefined ? undefined : (await store.read(path)).fields.get(name);
    if (value === undefined) return await problemResponse(c, parts, PROBLEMS.nothingStored);
    logger.info({ path, by: "page" }, "secret copied to the clipboard");
    return await copyResponse(c, parts, await clipboard.copy(new Secret(textOf(value))), path);
  }

  /** Puts the path of a file on the mount on the clipboard of this host. */
  async function copyPath(c: Ctx, path: string, form: URLSearchParams): Promise<Response> {
    const { fuse } = parts.view.status();
    const field = form.get("field");
    const name = field === null ? undefined : fieldName(field);
    const isKnown = fuse !== undefined && (field === null || name !== undefined);
    const at = isKnown ? mountedPath(fuse, path, name) : undefined;
    if (at === undefined) return await problemResponse(c, parts, PROBLEMS.notFound);
    return await copyResponse(c, parts, await clipboard.copy(new Secret(at)), path);
  }

  function edited(action: "save" | "add" | "remove", fields: Fields, form: URLSearchParams): EditOutcome {
    const name = form.get("name") ?? "";
    const text = form.get("text") ?? "";
    if (action !== "remove" && isDamaged(form)) return { refusal: "text_unusable" };
    if (action === "add") return addField(fields, name, text);
    const original = fieldName(form.get("field"));
    if (original === undefined) return { refusal: "field_missing" };
    return action === "save" ? changeField(fields, { original, name, text }) : removeField(fields, original);
  }

  /** False if another client was faster. */
  async function write(path: string, fields: Fields, version: number): Promise<boolean> {
    try {
      await secrets.replace(path, fields, version, "page");
      return true;
    } catch (error) {
      if (error instanceof SecretStoreError && error.code === "version_conflict") return false;
      throw error;
    }
  }

  async function read(path: string, version?: number): Promise<SecretDocument | undefined> {
    try {
      return await store.read(path, version === undefined ? {} : { version });
    } catch (error) {
      if (error instanceof SecretStoreError && error.code === "not_found") return undefined;
      throw error;
    }
  }
}

const COPY_REFUSALS: Readonly<Record<Exclude<CopyOutcome, "copied">, string>> = {
  unusable_text: "Not copied: the value is empty, longer than 64 KiB, or not text.",
  no_program: "Not copied: the daemon finds no clipboard here (wl-copy, xclip or xsel, and a display).",
  failed: "Not copied: the clipboard's program failed.",
};

/**
 * Response to a copy: one line for a page with scripts, else a page.
 *
 * @param path the secret whose page it was; undefined: the token was copied, from any page
 */
export async function copyResponse(
  c: Ctx,
  parts: RouteParts,
  outcome: CopyOutcome,
  path?: string,
): Promise<Response> {
  const announcement: Announcement = path === undefined ? "token_copied" : "copied";
  const inPlace = isForPart(c);
  if (outcome !== "copied") {
    const error = COPY_REFUSALS[outcome];
    if (inPlace) return c.html(html`<span class="error">${error}</span>`);
    return await problemResponse(c, parts, { detail: error, code: "clipboard_failed" });
  }
  if (inPlace) return c.html(html`${announcementText(announcement)}`);
  return path === undefined ? c.redirect(`/ui/?done=${announcement}`, 303) : done(c, path, announcement);
}

function done(c: Ctx, path: string, announcement: Announcement | undefined): Response {
  return c.redirect(secretUrl(path) + (announcement === undefined ? "" : `?done=${announcement}`), 303);
}

/** Whether two documents hold the same. A store may give the fields back in another order. */
function isSame(one: Fields, other: Fields): boolean {
  const sorted = { sortKeys: true };
  return printJson(one, sorted) === printJson(other, sorted);
}

/** Whether a name is a path of one segment. */
function isUsablePath(name: string): boolean {
  try {
    checkPath(name);
    return true;
  } catch {
    return false;
  }
}
