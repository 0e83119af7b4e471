import {
  completionCommand,
  versionCommand,
  type CommandSpec,
  type OptionSpec,
  type OptionSpecs,
  type Program,
} from "@devplat/cli";
import { BRAND } from "../brand.ts";
import { programVersion } from "../version.ts";
import type { GlobalFlags } from "./command.ts";

const json: OptionSpec = { type: "boolean", description: "Print JSON." };
const url: OptionSpec = { type: "string", value: "<address>", description: "The service (default SVC_URL)." };
const revokeTokens: OptionSpec = {
  type: "boolean",
  description: "End the tokens that were made with it, too.",
};
const timeout: OptionSpec = {
  type: "count",
  value: "<seconds>",
  description: "How long to wait for the code host.",
};
const limit: OptionSpec = {
  type: "count",
  value: "<MB>",
  description: "Cap on the size of the cached responses.",
};
const one = { min: 1, max: 1 } as const;

const scopeOptions: OptionSpecs = {
  token: {
    type: "string",
    value: "<token>",
    description: "The token in question; '-' reads it from standard input.",
  },
  scopes: {
    type: "string",
    value: "<list>",
    description: "In its place: scopes, such as contents:read.",
  },
  repository: {
    type: "string",
    value: "<owner/name>",
    description: "With --scopes: the repositories, by comma.",
    repeatable: true,
  },
  method: { type: "string", value: "<method>", description: "Of the request (default GET)." },
  graphql: {
    type: "string",
    value: "<query>",
    description: "In the place of a URL; '@FILE' reads it from a file.",
  },
  json,
};

const tokenOptions: OptionSpecs = {
  scopes: {
    type: "string",
    value: "<list>",
    description: "<resource>:<level> by comma, such as contents:read.",
    required: true,
  },
  duration: {
    type: "string",
    value: "<time>",
    description: "Lifetime, such as 30m, 12h, 7d.",
    required: true,
  },
  agent: {
    type: "boolean",
    description: "An agent token: it stands for an app's installation, not for you.",
  },
  app: {
    type: "string",
    value: "<id>",
    description: "With --agent: a registered app (default the default app).",
  },
  installation: {
    type: "string",
    value: "<account>",
    description: "With --agent: where the app is installed (default the owner).",
  },
  description: { type: "string", value: "<text>", description: "For lists." },
  session: { type: "string", value: "<label>", description: "Your own label for the run that it is for." },
  "ip-allow": {
    type: "string",
    value: "<list>",
    description: "Addresses and networks that may use it, by comma.",
  },
  rate: { type: "count", value: "<requests>", description: "Requests a minute that it may make." },
  "no-check": {
    type: "boolean",
    description: "Do not ask the code host whether you can reach the repositories.",
  },
  json,
};

const COMMANDS: readonly CommandSpec<GlobalFlags>[] = [
  {
    name: "serve",
    summary: "Run the service until SIGTERM or SIGINT.",
    options: { migrate: { type: "boolean", description: "Prepare the database first." } },
    load: async () => (await import("./serve.ts")).serve,
  },
  {
    name: "migrate",
    summary: "Prepare the database, or bring it up to date.",
    options: { json },
    load: async () => (await import("./migrate.ts")).up,
  },
  {
    name: "migrate up",
    summary: "The same: apply what is pending.",
    options: { json },
    load: async () => (await import("./migrate.ts")).up,
  },
  {
    name: "migrate status",
    summary: "Show what is applied and what is pending; exit code 1 if something is.",
    options: { json },
    load: async () => (await import("./migrate.ts")).status,
  },
  {
    name: "rekey",
    summary: "Encrypt stored secrets under the current key (after SVC_ENCRYPTION_KEY was replaced).",
    options: { json },
    load: async () => (await import("./rekey.ts")).rekey,
  },
  {
    name: "config check",
    summary: "Say what is wrong with the configuration, with file, line and key.",
    options: { json },
    load: async () => (await import("./config.ts")).check,
  },
  {
    name: "config print",
    summary: "Print the effective configuration; secrets are masked.",
    options: { json },
    load: async () => (await import("./config.ts")).print,
  },
  {
    name: "config schema",
    summary: "Print the JSON Schema of the configuration file, for editors.",
    load: async () => (await import("./config.ts")).schema,
  },
  {
    name: "repo list",
    summary: "List the cached repositories with their figures.",
    options: { json },
    load: async () => (await import("./repo.ts")).list,
  },
  {
    name: "repo add",
    usage: "OWNER/NAME",
    summary: "Add a repository to the cache list.",
    options: {
      timeout,
      limit,
      disabled: { type: "boolean", description: "List it, but do not cache yet." },
      check: { type: "boolean", description: "Ask the code host first whether you can read it." },
      json,
    },
    arguments: one,
    load: async () => (await import("./repo.ts")).add,
  },
  {
    name: "repo set",
    usage: "OWNER/NAME",
    summary: "Change a repository's settings.",
    options: {
      timeout: { ...timeout, word: "default" },
      limit: { ...limit, word: "none" },
      enable: { type: "boolean", description: "Serve from the cache.", excludes: "disable" },
      disable: { type: "boolean", description: "Pass through to the code host, keep the record." },
      json,
    },
    arguments: one,
    load: async () => (await import("./repo.ts")).set,
  },
  {
    name: "repo remove",
    usage: "OWNER/NAME",
    summary: "Take a repository off the list and remove its data.",
    options: { json },
    arguments: one,
    load: async () => (await import("./repo.ts")).remove,
  },
  {
    name: "repo warm",
    usage: "OWNER/NAME",
    summary: "Fetch ahead what the code host has new (needs cache.service_token, or an app).",
    options: { json },
    arguments: one,
    load: async () => (await import("./repo.ts")).warm,
  },
  {
    name: "repo purge",
    usage: "OWNER/NAME",
    summary: "Remove the cached data, keep the record.",
    options: { json },
    arguments: one,
    load: async () => (await import("./repo.ts")).purge,
  },
  {
    name: "repo import",
    usage: "FILE",
    summary:
      "List what a file names: 'owner/name [timeout=SECONDS] [limit=MB]' a line; '-' is standard input.",
    options: { json },
    arguments: one,
    load: async () => (await import("./repo-import.ts")).importRepositories,
  },
  {
    name: "token create",
    usage: "OWNER/NAME...",
    summary: "Create a proxy or agent token and print it; it is not shown again.",
    options: tokenOptions,
    arguments: { min: 1, max: 10_000 },
    load: async () => (await import("./token.ts")).create,
  },
  {
    name: "token list",
    summary: "List your tokens.",
    options: { json },
    load: async () => (await import("./token.ts")).list,
  },
  {
    name: "token show",
    usage: "ID",
    summary: "Show one token.",
    options: { json },
    arguments: one,
    load: async () => (await import("./token.ts")).show,
  },
  {
    name: "token revoke",
    usage: "[ID]",
    summary: "Revoke a token at once, by its id or by its value.",
    options: {
      value: { type: "boolean", description: "Read the token itself from standard input." },
      json,
    },
    arguments: { min: 0, max: 1 },
    load: async () => (await import("./token.ts")).revoke,
  },
  {
    name: "admin-token create",
    usage: "NAME",
    summary: "Create an administration token and print it; it is not shown again.",
    options: {
      duration: {
        type: "string",
        value: "<time>",
        description: "Lifetime, such as 12h, 90d.",
        required: true,
      },
      json,
    },
    arguments: one,
    load: async () => (await import("./admin-token.ts")).create,
  },
  {
    name: "admin-token list",
    summary: "List the administration tokens of all admins.",
    options: { json },
    load: async () => (await import("./admin-token.ts")).list,
  },
  {
    name: "admin-token revoke",
    usage: "ID",
    summary: "Revoke an administration token at once.",
    options: { "revoke-tokens": revokeTokens, json },
    arguments: one,
    load: async () => (await import("./admin-token.ts")).revoke,
  },
  {
    name: "scopes explain",
    usage: "[URL]",
    summary: "Say whether a token may make a request, and by which rule; exit code 1 if not.",
    options: scopeOptions,
    arguments: { min: 0, max: 1 },
    load: async () => (await import("./scopes.ts")).explain,
  },
  {
    name: "auth login",
    summary: "Sign in by a code that you approve in a browser; other commands use the session.",
    options: {
      url: { ...url, description: "The service; it becomes the default of SVC_URL." },
      admin: {
        type: "boolean",
        description: "Ask for the admin role, which whoever approves the code may give.",
      },
      json,
    },
    load: async () => (await import("./auth.ts")).login,
  },
  {
    name: "auth status",
    summary: "Say who you are at the service.",
    options: { url, json },
    load: async () => (await import("./auth.ts")).status,
  },
  {
    name: "auth logout",
    summary: "End the session, and forget it.",
    options: { url, "revoke-tokens": revokeTokens, json },
    load: async () => (await import("./auth.ts")).logout,
  },
  {
    name: "app list",
    summary: "List the code-host apps that are registered, for agent tokens and warming.",
    options: { json },
    load: async () => (await import("./app.ts")).list,
  },
  {
    name: "app add",
    usage: "APP-ID",
    summary: "Register an app; its key is tried out first.",
    options: {
      key: {
        type: "string",
        value: "<file>",
        description: "Its private key in PEM form; - reads standard input.",
        required: true,
      },
      default: { type: "boolean", description: "Make it the default." },
      json,
    },
    arguments: one,
    load: async () => (await import("./app.ts")).add,
  },
  {
    name: "app check",
    usage: "APP",
    summary: "Ask the code host whether its key works, what it may do, and where it is installed.",
    options: { json },
    arguments: one,
    load: async () => (await import("./app.ts")).check,
  },
  {
    name: "app set",
    usage: "APP",
    summary: "Change an app.",
    options: {
      key: { type: "string", value: "<file>", description: "A new private key; - reads standard input." },
      default: { type: "boolean", description: "Make it the default." },
      json,
    },
    arguments: one,
    load: async () => (await import("./app.ts")).set,
  },
  {
    name: "app remove",
    usage: "APP",
    summary: "Forget an app; agent tokens of it open nothing any more.",
    options: { json },
    arguments: one,
    load: async () => (await import("./app.ts")).remove,
  },
  {
    name: "doctor",
    summary: "Look at everything the service depends on; exit code 1 if something is wrong.",
    options: { json },
    load: async () => (await import("./doctor.ts")).doctor,
  },
  {
    name: "git-credential",
    usage: "get|store|erase",
    summary: "A git credential helper: hands git a token for the one repository (SVC_URL, SVC_TOKEN).",
    options: {
      write: { type: "boolean", description: "A token that may push, too." },
      duration: { type: "string", value: "<time>", description: "Lifetime of a token (default 1h)." },
    },
    arguments: one,
    load: async () => (await import("./git-credential.ts")).gitCredential,
  },
  completionCommand(() => PROGRAM),
  versionCommand(programVersion, BRAND.command),
];

/** The command line of this program. Exit codes: 0 done, 1 failed, 2 used or configured wrongly. */
export const PROGRAM: Program<GlobalFlags> = {
  name: BRAND.command,
  description:
    "A caching proxy in front of a code host: clones and fetches of listed repositories come from here.",
  commands: COMMANDS,
  globalOptions: {
    config: {
      type: "string",
      short: "c",
      value: "<file>",
      description: "Configuration file (default: SVC_CONFIG, ./svc.yaml, /etc/svc/config.yaml).",
    },
  },
  flags: ({ config }) => ({ config: typeof config === "string" ? config : undefined }),
  notes: `'repo', 'token', 'admin-token', 'scopes', 'auth' and 'app' ask a running service (SVC_URL, SVC_TOKEN).

Examples:
  SVC_DEV_MODE=true SVC_CACHE_ENABLED=true svc serve     try it out: http://localhost:8080/admin
  svc migrate && svc serve --config /etc/svc/config.yaml
  svc repo add octocat/Hello-World --timeout 600         list a repository
  git clone http://localhost:8080/octocat/Hello-World.git

Exit codes: 0 done, 1 failed, 2 used or configured wrongly. Output that nobody reads is dropped: it changes neither the work nor the code.`,
  usageExit: 2,
  usageCodes: ["usage", "config_invalid", "config_unreadable", "config_refused"],
  debug: { isOn: () => process.env["SVC_LOG_LEVEL"] === "debug", hint: "SVC_LOG_LEVEL=debug shows where" },
};
