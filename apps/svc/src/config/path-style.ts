import type { Config } from "./schema.ts";

/** Settings of the bucket that decide how its objects are addressed. */
type AddressSettings = Partial<Pick<Config["cache"], "object_path_style" | "object_endpoint">>;

/** Whether the bucket is in the path of addresses, and not in the host name. As the client does by default. */
export function usesPathStyle({
  object_path_style: isSet,
  object_endpoint: endpoint,
}: AddressSettings): boolean {
  return isSet ?? endpoint !== undefined;
}
