import type { Config } from "./schema.ts";

/** What is set and has nothing to work on in this version, as warnings: setting it must not look as if it worked. */
export function notUsedYet({ ssh }: Config): string[] {
  const isSet = ssh.certificate_authorities.length > 0 || ssh.insecure_ignore_host_key;
  return isSet ? ["ssh is checked, but managed SSH forwards are not built yet in this version"] : [];
}
