import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { StartSettings } from "./settings.ts";
import { shellQuote } from "./shell-quote.ts";

/** How to start one of the programs, and where it will answer. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly url: string;
  /** Names of the variables of `env` that its command line needs as well. */
  readonly settings: readonly string[];
}

/** The service in development mode, in front of `SVC_HOST_URL`. */
export async function prepareSvc(
  root: string,
  data: string,
  port: number,
  metricsPort: number,
): Promise<Launch> {
  const folder = join(data, "svc");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const settings = {
    SVC_DEV_MODE: "true",
    SVC_SERVER_LISTEN: `:${port}`,
    SVC_SERVER_BASE_URL: `http://localhost:${port}`,
    SVC_METRICS_LISTEN: `127.0.0.1:${metricsPort}`,
    SVC_DATA_DIR: folder,
    SVC_CACHE_ENABLED: "true",
    SVC_LOG_FORMAT: "text",
  };
  return {
    command: join(root, "node_modules/.bin/svc"),
    args: ["serve", "--migrate"],
    env: { ...settings, ...process.env },
    settings: [...new Set([...Object.keys(settings), ...namedLike("SVC_")])],
    url: `http://localhost:${port}`,
  };
}

function namedLike(prefix: string): string[] {
  return Object.keys(process.env).filter((name) => name.startsWith(prefix));
}

/** The daemon with its embedded store and one rule that writes a file below `data/`. */
export async function prepareAgent(
  root: string,
  data: string,
  port: number,
): Promise<Launch & { file: string }> {
  const folder = join(data, "agent");
  const file = join(folder, "files/registry.yaml");
  const config = join(folder, "etc/daemon/config.yaml");
  for (const path of [join(folder, "etc/daemon"), join(folder, "files")]) {
    await mkdir(path, { recursive: true, mode: 0o700 });
  }
  await writeFile(config, demonstration(folder, file, port), { mode: 0o600 });
  await readFile(file).catch(() => writeFile(file, EXISTING_FILE, { mode: 0o600 }));
  return {
    command: join(root, "node_modules/.bin/agent"),
    args: ["--log-format", "text", "run"],
    env: { ...process.env, ...agentFolders(folder) },
    settings: Object.keys(agentFolders(folder)),
    url: `http://127.0.0.1:${port}`,
    file,
  };
}

/** All places of the daemon inside `data/agent`, so that a try leaves nothing in the home folder. */
function agentFolders(folder: string): Record<string, string> {
  return {
    XDG_CONFIG_DIRS: join(folder, "etc"),
    XDG_CONFIG_HOME: join(folder, "config"),
    XDG_STATE_HOME: join(folder, "state"),
    XDG_DATA_HOME: join(folder, "share"),
    XDG_CACHE_HOME: join(folder, "cache"),
    XDG_RUNTIME_DIR: join(folder, "run"),
  };
}

const EXISTING_FILE = `# A file of yours: the daemon changes the managed keys and nothing else.
registry:
    url: "https://registry.example"   # stays as it is
    token: none yet   # this one is managed
retries: 3
`;

function demonstration(folder: string, file: string, port: number): string {
  return `# Written by npm start; edit a copy, not this file.
store:
  driver: embedded
sync:
  allowed_targets: [${JSON.stringify(join(folder, "files"))}]
web:
  enabled: true
  listen: 127.0.0.1:${port}
rules:
  - name: registry
    description: Token of the package registry
    key: demo/registry
    target:
      path: ${JSON.stringify(file)}
      format: yaml
      template: |
        registry:
          token: {{ .token }}
`;
}

/** Values from which the lines to paste are made. */
interface TrySheetParts {
  readonly svc: Launch;
  readonly agent: Launch & { readonly file: string };
  /** The folder for everything, as a path from the root folder. */
  readonly data: string;
  /** The repository is listed already, and may lie in `data` from an earlier try. */
  readonly isListed: boolean;
}

/** Text that is printed for a first try, and the shell file that its lines start from. */
export const trySheet = {
  /** Functions and variables for a POSIX shell. Holds a token of the development mode: 0600. */
  environment(root: string, svc: Launch, agent: Launch, token: string): string {
    const program = (name: "svc" | "agent", { env, settings }: Launch): string => {
      const given = settings.map((each) => `${each}=${shellQuote(env[each] ?? "")}`).join(" ");
      return `${name}() ( export ${given}; exec ${shellQuote(join(root, "node_modules/.bin", name))} "$@" )`;
    };
    return [
      `export SVC_URL=${shellQuote(svc.url)}`,
      `export SVC_TOKEN=${shellQuote(token)}`,
      // With what npm start has set, so that doctor and config look at this service.
      program("svc", svc),
      program("agent", agent),
      "",
    ].join("\n");
  },

  text(
    { host, repository, isPlaceholder }: StartSettings,
    { svc, agent, data, isListed }: TrySheetParts,
  ): string {
    const list = isListed
      ? `rm -rf ${data}/first ${data}/second ${data}/third   # ${repository} is listed since an earlier start`
      : `svc repo add ${repository}`;
    return `
Both are up. In another terminal, in this folder:

  . ${data}/env

  # svc ${svc.url} in front of ${host}
  ${list}
  git clone "$SVC_URL/${repository}.git" ${data}/first
  git clone "$SVC_URL/${repository}.git" ${data}/second
  curl -sS "$SVC_URL/metrics" -H "Authorization: Bearer $SVC_TOKEN" | grep svc_cache_request_total
  svc clone "$SVC_URL/${repository}.git" ${data}/third   # begins a seed, and clones with git. Some seconds later a clone takes the seed

  # agent ${agent.url}
  agent secrets put demo/registry token=hello
  cat ${shellQuote(agent.file)}

Pages: ${svc.url}/admin (any user name) and ${agent.url}/
${isPlaceholder ? `OWNER/NAME stands for a repository at ${host}; START_REPOSITORY names one.\n` : ""}These lines are in ${data}/lines.txt, too. Ctrl-C stops both.
`;
  },
};
