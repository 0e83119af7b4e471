import {
  commandGroup,
  completionCommand,
  countOption,
  flagOption,
  textOption,
  versionCommand,
  type CommandSpec,
  type OptionSpecs,
  type Program,
} from "@devplat/cli";
import { BRAND } from "../brand.ts";
import { programVersion } from "../version.ts";
import type { GlobalFlags } from "./command.ts";

const json = flagOption("Print JSON.");
const url = textOption("<address>", "The service (default SVC_URL).");
const revokeTokens = flagOption("End the tokens that were made with it, too.");
const timeout = countOption("<seconds>", "How long to wait for the code host.");
const limit = countOption("<MB>", "Cap on the size of the cached responses.");
const makeDefault = flagOption("Make it the default.");

const scopeOptions: OptionSpecs = {
  token: textOption("<token>", "The token in question; '-' reads it from standard input."),
  scopes: textOption("<list>", "In its place: scopes, such as contents:read."),
  repository: {
    ...textOption("<owner/name>", "With --scopes: the repositories, by comma."),
    repeatable: true,
  },
  method: textOption("<method>", "Of the request (default GET)."),
  graphql: textOption("<query>", "In the place of a URL; '@FILE' reads it from a file."),
  json,
};

const tokenOptions: OptionSpecs = {
  scopes: { ...textOption("<list>", "<resource>:<level> by comma, such as contents:read."), required: true },
  duration: { ...textOption("<time>", "Lifetime, such as 30m, 12h, 7d."), required: true },
  agent: flagOption("An agent token: it stands for an app's installation, not for you."),
  app: textOption("<id>", "With --agent: a registered app (default the default app)."),
  installation: textOption("<account>", "With --agent: where the app is installed (default the owner)."),
  description: textOption("<text>", "For lists."),
  session: textOption("<label>", "Your own label for the run that it is for."),
  "ip-allow": textOption("<list>", "Addresses and networks that may use it, by comma."),
  rate: countOption("<requests>", "Requests a minute that it may make."),
  "no-check": flagOption("Do not ask the code host whether you can reach the repositories."),
};

const backupOptions: OptionSpecs = {
  output: {
    ...textOption("<file>", "File to write, with mode 0600; '-' is standard output."),
    short: "o",
    required: true,
  },
  recipient: {
    ...textOption("<age1…>", "Encrypt for this age recipient (default: to a passphrase)."),
    short: "r",
    repeatable: true,
  },
  "recipients-file": {
    ...textOption("<file>", "Encrypt for the recipients in this file, one a line."),
    repeatable: true,
  },
  "passphrase-file": textOption(
    "<file>",
    "Its first line is the passphrase (default: SVC_BACKUP_PASSPHRASE, or ask).",
  ),
  "without-key": flagOption("Leave the encryption key out, such as if it is kept elsewhere."),
  json,
};

const restoreOptions: OptionSpecs = {
  identity: {
    ...textOption("<file>", "File with the age identity of a recipient (default: a passphrase)."),
    short: "i",
    repeatable: true,
  },
  "passphrase-file": textOption(
    "<file>",
    "Its first line is the passphrase (default: SVC_BACKUP_PASSPHRASE, or ask).",
  ),
  check: { ...flagOption("Only read the whole file and show what it has."), excludes: "configuration" },
  configuration: textOption(
    "<folder>",
    "Only write the configuration and the key, as config.yaml and secrets.env.",
  ),
  replace: flagOption("Delete what the database has, or overwrite the files of --configuration."),
  "keep-sessions": flagOption("Keep login sessions valid, also those that ended after the backup."),
  "keep-tokens": flagOption("Keep tokens valid, also those that were revoked after the backup."),
  "keep-cache": flagOption("Keep cached data valid, also if it was purged after the backup."),
  "other-host": flagOption("Restore although the configuration has another code host than the backup."),
  json,
};

const COMMANDS: readonly CommandSpec<GlobalFlags>[] = [
  {
    name: "serve",
    summary: "Run the service until SIGTERM or SIGINT.",
    options: {
      migrate: flagOption("Prepare the database first."),
      "require-object-store": flagOption("Refuse the start if the configured bucket cannot be used."),
    },
    load: async () => (await import("./serve.ts")).serve,
  },
  {
    name: "migrate",
    summary: "Prepare the database, or bring it up to date.",
    options: { json },
    load: async () => (await import("./migrate.ts")).up,
  },
  ...commandGroup(
    "migrate",
    async () => import("./migrate.ts"),
    {
      up: { summary: "Do the same as 'migrate'." },
      status: { summary: "Show what is applied and what is pending; exit code 1 if something is." },
    },
    { json },
  ),
  {
    name: "rekey",
    summary: "Encrypt stored secrets under the current key (after SVC_ENCRYPTION_KEY was replaced).",
    options: { json },
    load: async () => (await import("./rekey.ts")).rekey,
  },
  {
    name: "backup",
    summary: "Save database, encryption key and configuration in one encrypted file; the service may run.",
    options: backupOptions,
    load: async () => (await import("./backup/backup.ts")).backup,
  },
  {
    name: "restore",
    usage: "FILE",
    summary: "Restore a backup into an empty database; '-' reads standard input. Stop the service first.",
    options: restoreOptions,
    load: async () => (await import("./backup/restore.ts")).restore,
  },
  ...commandGroup("config", async () => import("./config.ts"), {
    check: {
      summary: "Show the faults of the configuration, with file, line and key.",
      options: { json },
    },
    print: { summary: "Print the effective configuration; secrets are masked.", options: { json } },
    schema: { summary: "Print the JSON Schema of the configuration file, for editors." },
  }),
  ...commandGroup(
    "repo",
    async () => import("./repo.ts"),
    {
      list: { summary: "List the cached repositories with their figures." },
      add: {
        usage: "OWNER/NAME",
        summary: "Add a repository to the cache list.",
        options: {
          timeout,
          limit,
          disabled: flagOption("List it, but do not cache yet."),
          check: flagOption("First ask the code host whether you can read it."),
        },
      },
      set: {
        usage: "OWNER/NAME",
        summary: "Change a repository's settings.",
        options: {
          timeout: { ...timeout, word: "default" },
          limit: { ...limit, word: "none" },
          enable: { ...flagOption("Serve from the cache."), excludes: "disable" },
          disable: flagOption("Pass through to the code host, keep the record."),
          seeds: {
            ...flagOption("Make and send seeds, also if cache.seeds is false."),
            excludes: "no-seeds",
          },
          "no-seeds": flagOption("Make and send no seeds."),
          bundles: { ...flagOption("Offer seeds to git as bundles."), excludes: "no-bundles" },
          "no-bundles": flagOption("Do not offer bundles."),
        },
      },
      remove: { usage: "OWNER/NAME", summary: "Take a repository off the list and remove its data." },
      warm: {
        usage: "OWNER/NAME",
        summary: "Fetch ahead what the code host has new (needs cache.service_token, or an app).",
      },
      purge: { usage: "OWNER/NAME", summary: "Remove the cached data, keep the record." },
    },
    { json },
  ),
  {
    name: "ensure",
    usage: "OWNER/NAME [REF]...",
    summary:
      "Bring the objects of refs (default HEAD) into the cache, before jobs fetch them; exit code 3 if they are not here in time.",
    options: { timeout: countOption("<seconds>", "How long to wait in all (default 600)."), json },
    load: async () => (await import("./ensure.ts")).ensure,
  },
  {
    name: "repo import",
    usage: "FILE",
    summary:
      "List the repositories of a file: 'owner/name [timeout=SECONDS] [limit=MB]' a line; '-' is standard input.",
    options: { json },
    load: async () => (await import("./repo-import.ts")).importRepositories,
  },
  ...commandGroup(
    "token",
    async () => import("./token.ts"),
    {
      create: {
        usage: "OWNER/NAME...",
        summary: "Create a proxy or agent token and print it; it is not shown again.",
        options: tokenOptions,
      },
      list: { summary: "List your tokens." },
      show: { usage: "ID", summary: "Show one token." },
      revoke: {
        usage: "[ID]",
        summary: "Revoke a token immediately, by its id or by its value.",
        options: { value: flagOption("Read the token itself from standard input.") },
      },
    },
    { json },
  ),
  ...commandGroup(
    "admin-token",
    async () => import("./admin-token.ts"),
    {
      create: {
        usage: "NAME",
        summary: "Create an administration token and print it; it is not shown again.",
        options: {
          duration: { ...textOption("<time>", "Lifetime, such as 12h, 90d."), required: true },
        },
      },
      list: { summary: "List the administration tokens of all admins." },
      revoke: {
        usage: "ID",
        summary: "Revoke an administration token immediately.",
        options: { "revoke-tokens": revokeTokens },
      },
    },
    { json },
  ),
  {
    name: "scopes explain",
    usage: "[URL]",
    summary: "Say whether a token may make a request, and by which rule; exit code 1 if not.",
    options: scopeOptions,
    load: async () => (await import("./scopes.ts")).explain,
  },
  ...commandGroup(
    "auth",
    async () => import("./auth.ts"),
    {
      login: {
        summary: "Sign in by a code that you approve in a browser; other commands use the session.",
        options: {
          url: { ...url, description: "The service; it becomes the default of SVC_URL." },
          admin: flagOption("Ask for the admin role, which the person who approves the code may give."),
        },
      },
      status: { summary: "Show who you are at the service.", options: { url } },
      logout: { summary: "End the session, and forget it.", options: { url, "revoke-tokens": revokeTokens } },
    },
    { json },
  ),
  ...commandGroup(
    "app",
    async () => import("./app.ts"),
    {
      list: { summary: "List the code-host apps that are registered, for agent tokens and warming." },
      add: {
        usage: "APP-ID",
        summary: "Register an app; its key is tried out first.",
        options: {
          key: {
            ...textOption("<file>", "Its private key in PEM form; - reads standard input."),
            required: true,
          },
          default: makeDefault,
        },
      },
      check: {
        usage: "APP",
        summary: "Ask the code host whether its key works, what it may do, and where it is installed.",
      },
      set: {
        usage: "APP",
        summary: "Change an app.",
        options: {
          key: textOption("<file>", "A new private key; - reads standard input."),
          default: makeDefault,
        },
      },
      remove: { usage: "APP", summary: "Forget an app; its agent tokens no longer open anything." },
    },
    { json },
  ),
  ...commandGroup(
    "instance",
    async () => import("./instance.ts"),
    { list: { summary: "List the instances of the service that use its database." } },
    { json },
  ),
  {
    name: "doctor",
    summary: "Look at everything the service depends on; exit code 1 if something is wrong.",
    options: {
      json,
      bucket: flagOption("Probe the bucket and read its manifests instead."),
      "accel-url": textOption("<url>", "Address of the web server in front (default: server.base_url)."),
    },
    load: async () => (await import("./doctor/doctor.ts")).doctor,
  },
  {
    name: "clone",
    usage: "[OPTIONS] URL [DIR]",
    summary:
      "Clone as git does, without indexing a pack here. Other options of git clone mean a plain git clone.",
    options: {
      branch: { ...textOption("<name>", "Check out this branch instead of the one of HEAD."), short: "b" },
      "no-checkout": { ...flagOption("Check out nothing."), short: "n" },
      bare: flagOption("Make a bare repository."),
      quiet: { ...flagOption("Show no progress."), short: "q" },
      progress: flagOption("Show progress also without a terminal."),
      into: textOption("<dir>", "Only bring the objects there, before the check-out step of a CI job."),
      "origin-url": textOption("<url>", "With --into: the URL that this step will use for origin."),
    },
    argumentsAsGiven: true,
    load: async () => (await import("./clone.ts")).clone,
  },
  {
    name: "git-credential",
    usage: "get|store|erase",
    summary: "A git credential helper: hands git a token for the one repository (SVC_URL, SVC_TOKEN).",
    options: {
      write: flagOption("A token that may also push."),
      duration: textOption("<time>", "Lifetime of a token (default 1h)."),
    },
    load: async () => (await import("./git-credential.ts")).gitCredential,
  },
  completionCommand(() => PROGRAM),
  versionCommand(programVersion),
];

/** The command line of this program. Exit codes: 0 done, 1 failed, 2 used or configured wrongly. */
export const PROGRAM: Program<GlobalFlags> = {
  name: BRAND.command,
  description:
    "A caching proxy in front of a code host: clones and fetches of listed repositories come from here.",
  commands: COMMANDS,
  globalOptions: {
    config: {
      ...textOption("<file>", "Configuration file (default: SVC_CONFIG, ./svc.yaml, /etc/svc/config.yaml)."),
      short: "c",
    },
  },
  flags: ({ config }) => ({ config: typeof config === "string" ? config : undefined }),
  notes: `'ensure' asks a running service (SVC_URL) with the credential that git has for it.
'repo', 'token', 'admin-token', 'scopes', 'auth', 'app' and 'instance' ask a running service (SVC_URL, SVC_TOKEN).

Examples:
  SVC_DEV_MODE=true SVC_CACHE_ENABLED=true svc serve     try it out: http://localhost:8080/admin
  svc migrate && svc serve --config /etc/svc/config.yaml
  svc repo add octocat/Hello-World --timeout 600         list a repository
  git clone http://localhost:8080/octocat/Hello-World.git

Exit codes: 0 done, 1 failed, 2 used or configured wrongly, 3 ('ensure') not yet. Output that nobody reads is dropped: it changes neither the work nor the code.`,
  usageExit: 2,
  usageCodes: ["usage", "config_invalid", "config_unreadable", "config_refused"],
  debug: { isOn: () => process.env["SVC_LOG_LEVEL"] === "debug", hint: "SVC_LOG_LEVEL=debug shows where" },
};
