import { z } from "zod";
import { appChangeSchema, appRequestSchema } from "../administration/apps/app-input.ts";
import type { Apps } from "../administration/apps/apps.ts";
import type { CodeHost } from "../code-host/code-host.ts";
import type { OwnAddress } from "../own-address.ts";
import type { AppRecord } from "../storage/store.ts";
import { entityTag, expectedVersions } from "./entity-tag.ts";
import { created, isoTime, operation, type OperationResponse, type Operation } from "./operation.ts";

const PATH = "/api/apps";
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

/** Registered apps of the code host, which agent tokens and warming need. For admins. */
export function appOperations(apps: Apps, codeHost: CodeHost, address: OwnAddress): Operation[] {
  const common = { tag: "Apps", access: "admin" } as const;
  const view = (record: AppRecord): z.output<typeof appSchema> => appView(record, codeHost);
  const response = (record: AppRecord): OperationResponse => ({
    headers: { ETag: entityTag(record.version) },
    body: view(record),
  });
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
        502: "The code host gave no response",
      },
      async handle({ actor, body }) {
        const app = await apps.register(actor, body);
        return created(`${address.baseUrl}${PATH}/${app.id}`, response(app));
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: PATH,
      id: "listApps",
      summary: "List registered apps",
      result: z.array(appSchema),
      handle: async ({ actor }) => ({ body: (await apps.list(actor)).map(view) }),
    }),
    operation({
      ...common,
      method: "GET",
      path: `${PATH}/{id}`,
      id: "getApp",
      summary: "Show one app",
      result: appSchema,
      refusals: unknown,
      handle: async ({ actor, id }) => response(await apps.get(actor, id)),
    }),
    operation({
      ...common,
      method: "PATCH",
      path: `${PATH}/{id}`,
      id: "changeApp",
      summary: "Change an app's key or webhook secret, or make it the default",
      body: appChangeSchema,
      result: appSchema,
      conditional: true,
      refusals: { ...unknown, 502: "The code host gave no response" },
      handle: async ({ actor, id, body, ifMatch }) =>
        response(await apps.update(actor, id, body, expectedVersions(ifMatch))),
    }),
    operation({
      ...common,
      method: "DELETE",
      path: `${PATH}/{id}`,
      id: "removeApp",
      summary: "Forget an app; its installation tokens are revoked, and agent tokens of it open nothing",
      conditional: true,
      refusals: unknown,
      handle: async ({ actor, id, ifMatch }) => apps.remove(actor, id, expectedVersions(ifMatch)),
    }),
    operation({
      ...common,
      method: "POST",
      path: `${PATH}/{id}/check`,
      id: "checkApp",
      summary: "Ask the code host about an app: whether its key works, what it may do, where it is installed",
      result: checkedAppSchema,
      refusals: { ...unknown, 422: "Its key is not taken", 502: "The code host gave no response" },
      async handle({ actor, id }) {
        const { app, host, installations } = await apps.check(actor, id);
        return {
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

function appView(record: AppRecord, codeHost: CodeHost): z.output<typeof appSchema> {
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
    created_at: isoTime(record.createdAt),
    updated_at: isoTime(record.updatedAt),
  };
}
