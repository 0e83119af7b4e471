import { urlPath } from "../../../../secrets/url-path.ts";

/** Begin of the address of an enrolment's page, before engine and key. */
export const ENROLMENTS_PREFIX = "/ui/enrolments/";

/** Page of a running enrolment. */
export function enrolmentUrl({ engine, key }: { readonly engine: string; readonly key: string }): string {
  return `${ENROLMENTS_PREFIX}${encodeURIComponent(engine)}/${urlPath(key)}/`;
}
