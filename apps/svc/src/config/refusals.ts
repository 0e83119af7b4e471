import { isLoopbackAddress, parseListen } from "./listen.ts";
import { SvcError } from "../errors.ts";
import type { Config } from "./schema.ts";

/** Keys of the documented interface whose part this version does not have. Ignoring them would be worse than a refusal. */
const NOT_YET: readonly { readonly key: string; readonly isSet: (config: Config) => boolean }[] = [
  { key: "cache.object_bucket", isSet: ({ cache }) => cache.object_bucket !== undefined },
  { key: "cache.object_region", isSet: ({ cache }) => cache.object_region !== undefined },
  { key: "cache.object_endpoint", isSet: ({ cache }) => cache.object_endpoint !== undefined },
];

/**
 * Refuses configurations that are well-formed, but must not be started with.
 *
 * @throws SvcError `config_refused`, one line
 */
export function refuseUnusable(config: Config): void {
  const early = NOT_YET.find(({ isSet }) => isSet(config));
  if (early !== undefined) {
    throw refused(`${early.key} is set, but this version does not have that part yet: remove it to start`);
  }
  const { client_id: clientId, client_secret: clientSecret } = config.host;
  if ((clientId === undefined) !== (clientSecret === undefined)) {
    throw refused("host.client_id and host.client_secret belong together: set both, or none");
  }
  if ((config.host.app_id === undefined) !== (config.host.private_key === undefined)) {
    throw refused("host.app_id and host.private_key belong together: set both, or none");
  }
  if (config.host.kind === "gitea" && config.host.app_id !== undefined) {
    throw refused("host.app_id is set, but Gitea knows no apps: remove it to start");
  }
  if (config.server.proxy_protocol && config.server.trusted_proxies.length === 0) {
    throw refused(
      "server.proxy_protocol needs server.trusted_proxies: who may say where a connection is from",
    );
  }
  const address = parseListen(config.server.listen);
  const explicit = address?.kind === "tcp" && address.host !== undefined;
  if (config.dev.mode && !config.dev.mode_unsafe && explicit && !isLoopbackAddress(address)) {
    throw refused(
      `server.listen is ${config.server.listen}, which other machines can reach, and development mode lets anyone ` +
        "log in as anyone: listen on a loopback address, or set SVC_DEV_MODE_UNSAFE=true",
    );
  }
}

/** What is not set, or has no effect, and that an administrator may not mean; one line each. */
export function ineffective(config: Config): string[] {
  const warnings: string[] = [];
  if (config.host.client_id === undefined && !config.dev.mode) {
    warnings.push("host.client_id is not set: nobody can sign in");
  }
  if (config.dev.mode_unsafe && !config.dev.mode) {
    warnings.push("dev.mode_unsafe has no effect without dev.mode");
  }
  return warnings;
}

function refused(message: string): SvcError {
  return new SvcError("config_refused", message);
}
