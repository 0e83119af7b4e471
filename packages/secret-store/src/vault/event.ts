import type { SecretChange } from "../contract.ts";
import type { UserRoot } from "../paths.ts";
import type { ResponsePart } from "./response.ts";

/** Types of key-value events that remove data (Vault documentation, "Event notifications"). */
const DELETIONS = /^kv-v2\/(?:data-delete|metadata-delete|destroy)$/;

/**
 * Change below the user's root that an event reports. Undefined for other events.
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
  // The path has the mount, but not in the first versions of Vault.
  const inMount = path.startsWith(`${mount}/`) ? path.slice(mount.length + 1) : path;
  const below = /^(?:data|metadata|delete|undelete|destroy)\/(.+)$/.exec(inMount)?.[1];
  if (below === undefined || !below.startsWith(folder) || below === folder) return undefined;
  return { path: below.slice(folder.length), kind: DELETIONS.test(type) ? "deleted" : "written" };
}
