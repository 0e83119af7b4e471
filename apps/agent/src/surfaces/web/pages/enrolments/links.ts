import { urlPath } from "../../../../secrets/url-path.ts";

/** What stands before engine and key in the address of an enrolment's page. */
export const ENROLMENTS_PREFIX = "/ui/enrolments/";

/** Where an enrolment runs. */
export function enrolmentUrl({ engine, key }: { readonly engine: string; readonly key: string }): string {
  return `${ENROLMENTS_PREFIX}${encodeURIComponent(engine)}/${urlPath(key)}/`;
}
