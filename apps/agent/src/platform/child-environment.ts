import { BRAND } from "../brand.ts";

/** The environment of every child: ours without the token. */
export function childEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { [`${BRAND.environmentPrefix}_TOKEN`]: _token, ...rest } = environment;
  return rest;
}
