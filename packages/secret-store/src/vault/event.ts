import type { SecretChange } from "../contract.ts";
import type { UserRoot } from "../paths.ts";
import type { ResponsePart } from "./response.ts";

/** Events of the key-value engine that take something away (Vault documentation, "Event notifications"). */
const DELETIONS = /^kv-v2\/(?:data-delete|metadata-delete|destroy)$/;

/**
 * The change below the user's root that one event tells of; undefined for any other event.
 * @param event a CloudEvents document (cloudevents.io, 1.0) with Vault's own `data`
 */
export function changeOf(event: ResponsePart, { mount, folder }: UserRoot): SecretChange | undefined {
  const data = event.get("data");
  const type = data.get("event_type").or("", (part) => part.string());
  if (!type.startsWith("kv-v2/")) return undefined;
  const path = data
    .get("event")
    .get("metadata")
    .get("path")
    .or("", (part) => part.string());
  // With the mount, or without it as the first versions sent it.
  const inMount = path.startsWith(`${mount}/`) ? path.slice(mount.length + 1) : path;
  const below = /^(?:data|metadata|delete|undelete|destroy)\/(.+)$/.exec(inMount)?.[1];
  if (below === undefined || !below.startsWith(folder) || below === folder) return undefined;
  return { path: below.slice(folder.length), kind: DELETIONS.test(type) ? "deleted" : "written" };
}
