import { z } from "zod";
import type { Instances, InstanceState } from "../administration/instances/instances.ts";
import { operation, type Operation } from "./operation.ts";

const seconds = z.number().int().nonnegative();
export const instanceSchema = z
  .strictObject({
    id: z.string().meta({ description: "New with each start" }),
    host_name: z.string(),
    address: z
      .string()
      .nullable()
      .meta({ description: "Host and port, or socket, at which it listens; null: an earlier version" }),
    version: z.string(),
    ready: z
      .boolean()
      .meta({ description: "Whether it takes requests: it said so, and reported in the last 10 seconds" }),
    is_this: z.boolean().meta({ description: "Whether it is the one that answers" }),
    uptime_seconds: seconds,
    report_age_seconds: seconds.meta({ description: "Since its last report; it reports every 5 seconds" }),
    object_key_id: z
      .string()
      .nullable()
      .meta({ description: "Id of its key for manifests in the bucket; null: it has no bucket" }),
    differs_in: z.array(z.string()).meta({
      description: "Settings in which it differs from the one that answers, so that they do not share data",
    }),
    figures_age_seconds: seconds
      .nullable()
      .meta({ description: "Since it stored its figures, which it does every minute; null: not yet" }),
  })
  .meta({ id: "Instance" });

/** The instances on one database. */
export function instanceOperations(instances: Instances): Operation[] {
  return [
    operation({
      method: "GET",
      path: "/api/instances",
      id: "listInstances",
      tag: "Service",
      summary: "List the instances that use this database",
      description: "An instance that stops is taken off immediately, one that died after five minutes.",
      access: "admin",
      result: z.array(instanceSchema),
      handle: async ({ actor }) => ({ body: (await instances.list(actor)).map(instanceView) }),
    }),
  ];
}

function instanceView(instance: InstanceState): z.output<typeof instanceSchema> {
  return {
    id: instance.id,
    host_name: instance.hostName,
    address: instance.address ?? null,
    version: instance.version,
    ready: instance.ready,
    is_this: instance.isThis,
    uptime_seconds: secondsOf(instance.uptimeMs),
    report_age_seconds: secondsOf(instance.reportAgeMs),
    object_key_id: instance.manifestKeyId ?? null,
    differs_in: [...instance.differsIn],
    figures_age_seconds: instance.figuresAgeMs === undefined ? null : secondsOf(instance.figuresAgeMs),
  };
}

function secondsOf(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000));
}
