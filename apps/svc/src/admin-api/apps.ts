import type { Identity } from "../identity/principal.ts";
import { Secret } from "@devplat/base";
import { z } from "zod";
import type { AppRegistry } from "../identity/apps/app-registry.ts";
import type { CodeHost } from "../code-host/code-host.ts";
import { SvcError } from "../errors.ts";
import type { OwnAddress } from "../own-address.ts";
import type { AppRecord } from "../storage/store.ts";
import { entityTag, expectedVersion } from "./entity-tag.ts";
import { operation, type Operation } from "./operation.ts";

const PATH = "/api/apps";
/** A 16384-bit key in PEM has 12 KB. */
const MAX_KEY = 16 * 1024;
const MAX_SECRET = 500;

const secret = z.string().min(1).max(MAX_SECRET);
const privateKey = z.string().min(1).max(MAX_KEY).meta({
  description: "PEM, as the code host gives it; tried out before it is kept, and never shown",
});

export const appRequestSchema = z
  .strictObject({
    app_id: z
      .string()
      .regex(/^\d{1,20}$/, "must be the number that the code host shows")
      .meta({ description: "The code host's id of the app" }),
    private_key: privateKey,
    webhook_secret: secret.nullable().optional(),
    is_default: z.boolean().optional().meta({ description: "Default: only for the first app" }),
  })
  .meta({ id: "AppRequest" });

const appChangeSchema = z
  .strictObject({
    private_key: privateKey.optional(),
    webhook_secret: secret.nullable().optional().meta({ description: "null removes it" }),
    is_default: z.literal(true).optional().meta({ description: "Takes it from the app that has it" }),
  })
  .meta({ id: "AppChange" });

const time = z.iso.datetime();
export const appSchema = z
  .strictObject({
    id: z.string().meta({ description: "UUIDv7" }),
    app_id: z.string(),
    slug: z.string(),
    name: z.string(),
    owner: z.string().nullable(),
    is_default: z.boolean(),
    has_webhook_secret: z.boolean(),
    source: z.enum(["configuration", "api", "manifest"]),
    install_url: z.string().nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: "App" });

const checkedAppSchema = z
  .strictObject({
    app: appSchema,
    permissions: z.record(z.string(), z.string()),
    installations: z.array(
      z.strictObject({
        id: z.string(),
        account: z.string(),
        repositories: z.enum(["all", "selected"]),
        suspended: z.boolean(),
        permissions: z.record(z.string(), z.string()),
      }),
    ),
  })
  .meta({ id: "CheckedApp" });

/** Registered apps of the code host: what agent tokens and warming stand on. For admins. */
export function appOperations(apps: AppRegistry, codeHost: CodeHost, address: OwnAddress): Operation[] {
  const common = { tag: "Apps", access: "admin" } as const;
  const view = (record: AppRecord): z.output<typeof appSchema> => appView(record, codeHost);
  const tagged = (record: AppRecord): { ETag: string } => ({ ETag: entityTag(record.version) });
  const unknown = { 404: "No app has this id" };
  return [
    operation({
      ...common,
      method: "POST",
      path: PATH,
      id: "registerApp",
      summary: "Register an app by its id and private key",
      body: appRequestSchema,
      result: appSchema,
      successStatus: 201,
      refusals: {
        409: "It is registered, or this code host knows no apps",
        502: "The code host gave no answer",
      },
      async handle({ body, identity, client }) {
        const given = {
          appId: body.app_id,
          privateKey: new Secret(body.private_key),
          webhookSecret:
            typeof body.webhook_secret === "string" ? new Secret(body.webhook_secret) : undefined,
          isDefault: body.is_default ?? false,
        };
        const record = await apps.register(given, required(identity), client);
        const headers = { Location: `${address.baseUrl}${PATH}/${record.id}`, ...tagged(record) };
        return { status: 201, headers, body: view(record) };
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: PATH,
      id: "listApps",
      summary: "List registered apps",
      result: z.array(appSchema),
      successStatus: 200,
      handle: async () => ({ status: 200, body: (await apps.list()).map(view) }),
    }),
    operation({
      ...common,
      method: "GET",
      path: `${PATH}/{id}`,
      id: "getApp",
      summary: "Show one app",
      result: appSchema,
      successStatus: 200,
      refusals: unknown,
      async handle({ parameters }) {
        const record = await apps.get(parameters["id"] ?? "");
        return { status: 200, headers: tagged(record), body: view(record) };
      },
    }),
    operation({
      ...common,
      method: "PATCH",
      path: `${PATH}/{id}`,
      id: "changeApp",
      summary: "Change an app's key or webhook secret, or make it the default",
      body: appChangeSchema,
      result: appSchema,
      successStatus: 200,
      conditional: true,
      refusals: { ...unknown, 502: "The code host gave no answer" },
      async handle({ parameters, body, ifMatch, identity, client }) {
        const { private_key: key, webhook_secret: hook, is_default: isDefault } = body;
        const change = {
          privateKey: key === undefined ? undefined : new Secret(key),
          webhookSecret: typeof hook === "string" ? new Secret(hook) : hook,
          isDefault,
        };
        const expected = ({ version }: AppRecord): void => void expectedVersion(ifMatch, version);
        const id = parameters["id"] ?? "";
        const record = await apps.update(id, change, expected, required(identity), client);
        return { status: 200, headers: tagged(record), body: view(record) };
      },
    }),
    operation({
      ...common,
      method: "DELETE",
      path: `${PATH}/{id}`,
      id: "removeApp",
      summary: "Forget an app; its installation tokens are revoked, and agent tokens of it open nothing",
      successStatus: 204,
      conditional: true,
      refusals: unknown,
      async handle({ parameters, ifMatch, identity, client }) {
        const expected = ({ version }: AppRecord): void => void expectedVersion(ifMatch, version);
        await apps.remove(parameters["id"] ?? "", expected, required(identity), client);
        return { status: 204 };
      },
    }),
    operation({
      ...common,
      method: "POST",
      path: `${PATH}/{id}/check`,
      id: "checkApp",
      summary: "Ask the code host about an app: whether its key works, what it may do, where it is installed",
      result: checkedAppSchema,
      successStatus: 200,
      refusals: { ...unknown, 422: "Its key is not taken", 502: "The code host gave no answer" },
      async handle({ parameters }) {
        const { app, host, installations } = await apps.check(parameters["id"] ?? "");
        return {
          status: 200,
          body: {
            app: view(app),
            permissions: host.permissions,
            installations: installations.map(({ selection, ...each }) => ({
              ...each,
              repositories: selection,
            })),
          },
        };
      },
    }),
  ];
}

export function appView(record: AppRecord, codeHost: CodeHost): z.output<typeof appSchema> {
  return {
    id: record.id,
    app_id: record.appId,
    slug: record.slug,
    name: record.name,
    owner: record.ownerLogin ?? null,
    is_default: record.isDefault,
    has_webhook_secret: record.webhookSecret !== undefined,
    source: record.source,
    install_url: codeHost.apps?.installUrl(record.slug) ?? null,
    created_at: new Date(record.createdAt).toISOString(),
    updated_at: new Date(record.updatedAt).toISOString(),
  };
}

function required(identity: Identity | undefined): Identity {
  if (identity === undefined) throw new SvcError("forbidden", "A session is needed");
  return identity;
}
