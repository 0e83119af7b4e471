const DEFAULT_HOST = "https://github.com";
const DEFAULT_REPOSITORY = "octocat/Hello-World";
const PLACEHOLDER = "OWNER/NAME";
/** Milliseconds that the code host gets to answer before a warning. */
const HOST_WAIT_MS = 3000;

/** Settings of `npm start` from the environment. */
export interface StartSettings {
  /** Address of the code host. */
  readonly host: string;
  /** `owner/name`; stands for one that the reader chooses where {@link isPlaceholder}. */
  readonly repository: string;
  readonly isPlaceholder: boolean;
}

/** The option of `npm start` with which the code host runs on this machine, too. */
const LOCAL_HOST = "--local-host";

/**
 * Reads the arguments, `SVC_HOST_URL` and `START_REPOSITORY`.
 *
 * @returns `local-host` if a code host is to be started
 * @throws Error with what to do, before anything is started
 */
export function readSettings(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): StartSettings | "local-host" {
  if (args.length === 1 && args[0] === LOCAL_HOST) {
    const given = ["SVC_HOST_URL", "SVC_HOST_API_URL", "START_REPOSITORY"].filter(
      (name) => environment[name] !== undefined,
    );
    if (given.length === 0) return "local-host";
    throw new Error(
      `${LOCAL_HOST} has a code host and a repository of its own: unset ${given.join(" and ")}.`,
    );
  }
  // npm sets a variable for each option that it keeps for itself.
  if (environment["npm_config_local_host"] !== undefined) {
    throw new Error(`npm keeps options without "--" before them for itself: run npm start -- ${LOCAL_HOST}`);
  }
  if (args.length > 0) {
    throw new Error(
      `npm start takes no argument but ${LOCAL_HOST}, and was given "${args.join(" ")}". SVC_HOST_URL and START_REPOSITORY choose what to try.`,
    );
  }
  const host = environment["SVC_HOST_URL"] ?? DEFAULT_HOST;
  if (!/^https?:\/\/[^/]/.test(host) || !URL.canParse(host)) {
    const meant = `http://${host.replace(/^[a-z+]*:?\/\//, "")}`;
    const hint = URL.canParse(meant) && host !== "" ? `; did you mean ${meant}?` : "";
    throw new Error(`SVC_HOST_URL is not an http:// or https:// address: "${host}"${hint}`);
  }
  const named = environment["START_REPOSITORY"];
  if (named !== undefined && !/^[\w.-]+\/[\w.-]+$/.test(named)) {
    throw new Error(`START_REPOSITORY is not OWNER/NAME: "${named}"`);
  }
  const repository = named ?? (host === DEFAULT_HOST ? DEFAULT_REPOSITORY : PLACEHOLDER);
  return { host, repository, isPlaceholder: repository === PLACEHOLDER };
}

/** A warning where the code host does not answer; undefined: it does. */
export async function hostWarning(host: string): Promise<string | undefined> {
  try {
    const answer = await fetch(host, { redirect: "manual", signal: AbortSignal.timeout(HOST_WAIT_MS) });
    await answer.body?.cancel();
    return undefined;
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = cause instanceof Error ? cause.message : String(cause);
    return `Warning: ${host} does not answer (${reason}). Clones of new repositories fail until it does; SVC_HOST_URL names another code host.`;
  }
}
