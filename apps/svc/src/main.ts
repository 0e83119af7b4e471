import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { AppError, messageOf } from "@devplat/base";
import { dropUnreadOutput, noteText, printLine, printText } from "@devplat/base/terminal";
import { BRAND } from "./brand.ts";
import type { CredentialOptions } from "./commands/git-credential.ts";
import type { AddOptions, SetOptions } from "./commands/repo.ts";
import type { LoginOptions, LogoutOptions } from "./commands/auth.ts";
import type { CreateOptions } from "./commands/token.ts";
import type { ExplainOptions } from "./commands/scopes.ts";
import { programVersion } from "./version.ts";

/** Exit codes: done, failed, used or configured wrongly. */
const EXIT = { ok: 0, failed: 1, usage: 2 } as const;
const USAGE_CODES: readonly string[] = ["usage", "config_invalid", "config_unreadable", "config_refused"];

// What this program writes (repositories, the database, keys) is for its own user alone.
process.umask(0o077);
dropUnreadOutput(BRAND.command);
process.exitCode = await run(process.argv.slice(2));

async function run(parameters: readonly string[]): Promise<number> {
  try {
    await program().parseAsync([...parameters], { from: "user" });
    // A command that found something wrong, but did what it was asked, has set the code itself.
    return typeof process.exitCode === "number" ? process.exitCode : EXIT.ok;
  } catch (error) {
    // commander has printed its own message already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    noteText(`${BRAND.command}: ${messageOf(error).replaceAll("\n", `\n${BRAND.command}: `)}\n`);
    if (!(error instanceof AppError)) return EXIT.failed;
    if (error.hint !== undefined) noteText(`${error.hint}\n`);
    return USAGE_CODES.includes(error.code) ? EXIT.usage : EXIT.failed;
  }
}

function program(): Command {
  const root = new Command(BRAND.command)
    .description(
      "A caching proxy in front of a code host: clones and fetches of listed repositories come from here.",
    )
    .option(
      "-c, --config <file>",
      "configuration file (default: SVC_CONFIG, ./svc.yaml, /etc/svc/config.yaml)",
    )
    .exitOverride()
    .configureOutput({ writeOut: printText, writeErr: noteText })
    .showHelpAfterError(`(${BRAND.command} --help shows what there is)`)
    .addHelpText(
      "after",
      `
Examples:
  SVC_DEV_MODE=true SVC_CACHE_ENABLED=true svc serve     try it out: http://localhost:8080/admin
  svc migrate && svc serve --config /etc/svc/config.yaml
  svc repo add octocat/Hello-World --timeout 600         list a repository (SVC_URL, SVC_TOKEN)
  git clone http://localhost:8080/octocat/Hello-World.git

Exit codes: 0 done, 1 failed, 2 used or configured wrongly. Output that nobody reads is dropped: it changes neither the work nor the code.`,
    );
  const config = (): { file: string | undefined } => ({ file: root.opts<{ config?: string }>().config });

  root
    .command("serve")
    .description("run the service until SIGTERM or SIGINT")
    .option("--migrate", "prepare the database first")
    .action(async (options: { migrate?: boolean }) => {
      const { serve } = await import("./commands/serve.ts");
      await serve({ ...config(), migrate: options.migrate === true });
    });

  const migrate = root.command("migrate").description("prepare the database, or bring it up to date");
  migrate
    .command("up", { isDefault: true })
    .description("apply what is pending (the default)")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) =>
      (await import("./commands/migrate.ts")).migrateUp({ ...config(), json: options.json === true }),
    );
  migrate
    .command("status")
    .description("show what is applied and what is pending; exit code 1 if something is")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) =>
      (await import("./commands/migrate.ts")).migrateStatus({ ...config(), json: options.json === true }),
    );

  root
    .command("rekey")
    .description("encrypt stored secrets under the current key (after SVC_ENCRYPTION_KEY was replaced)")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) =>
      (await import("./commands/rekey.ts")).rekey({ ...config(), json: options.json === true }),
    );

  const configuration = root.command("config").description("look at the configuration without starting");
  configuration
    .command("check")
    .description("say what is wrong, with file, line and key")
    .action(async () => (await import("./commands/config.ts")).checkConfig(config()));
  configuration
    .command("print")
    .description("print the effective configuration; secrets are masked")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) =>
      (await import("./commands/config.ts")).printEffectiveConfig({
        ...config(),
        json: options.json === true,
      }),
    );

  configuration
    .command("schema")
    .description("print the JSON Schema of the configuration file, for editors")
    .action(async () => (await import("./commands/config.ts")).printConfigSchema());

  addRepositoryCommands(root);
  addTokenCommands(root);
  addScopeCommands(root);
  addAuthCommands(root);
  addAppCommands(root);

  root
    .command("doctor")
    .description("look at everything the service depends on; exit code 1 if something is wrong")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) =>
      (await import("./commands/doctor.ts")).doctor({ ...config(), json: options.json === true }),
    );
  root
    .command("git-credential <action>")
    .description("a git credential helper: hands git a token for the one repository (SVC_URL, SVC_TOKEN)")
    .option("--write", "a token that may push, too")
    .option("--duration <time>", "lifetime of a token", "1h")
    .action(async (action: string, options: CredentialOptions) =>
      (await import("./commands/git-credential.ts")).gitCredential(action, options),
    );
  root
    .command("version")
    .description("print the version")
    .action(() => printLine(`${BRAND.command} ${programVersion()}`));
  return root;
}

function addRepositoryCommands(root: Command): void {
  const repo = root
    .command("repo")
    .description("cached repositories of a running service (SVC_URL, SVC_TOKEN)");
  const commands = async () => import("./commands/repo.ts");
  const json = (): Option => new Option("--json", "as JSON");
  repo
    .command("list")
    .description("list them with their figures")
    .addOption(json())
    .action(async (options: { json?: boolean }) =>
      (await commands()).listRepositories(options.json === true),
    );
  repo
    .command("add <owner/name>")
    .description("add a repository to the cache list")
    .option("--timeout <seconds>", "how long to wait for the code host", wholeNumber)
    .option("--limit <MB>", "cap on the size of the cached responses", wholeNumber)
    .option("--disabled", "list it, but do not cache yet")
    .option("--check", "ask the code host first whether you can read it")
    .action(async (name: string, options: AddOptions) => (await commands()).addRepository(name, options));
  repo
    .command("set <owner/name>")
    .description("change a repository's settings")
    .option(
      "--timeout <seconds>",
      "how long to wait for the code host; 'default' resets it",
      wholeNumberOr("default"),
    )
    .option(
      "--limit <MB>",
      "cap on the size of the cached responses; 'none' clears it",
      wholeNumberOr("none"),
    )
    .addOption(new Option("--enable", "serve from the cache").conflicts("disable"))
    .addOption(new Option("--disable", "pass through to the code host, keep the record"))
    .action(async (name: string, options: SetOptions) => (await commands()).setRepository(name, options));
  repo
    .command("remove <owner/name>")
    .description("take a repository off the list and remove its data")
    .action(async (name: string) => (await commands()).removeRepository(name));
  repo
    .command("warm <owner/name>")
    .description("fetch ahead what the code host has new (needs cache.service_token, or an app)")
    .action(async (name: string) => (await commands()).warmRepository(name));
  repo
    .command("purge <owner/name>")
    .description("remove the cached data, keep the record")
    .action(async (name: string) => (await commands()).purgeRepository(name));
  repo
    .command("import <file>")
    .description(
      "list what a file names: 'owner/name [timeout=SECONDS] [limit=MB]' a line; '-' is standard input",
    )
    .option("--json", "as JSON")
    .action(async (file: string, options: { json?: boolean }) =>
      (await import("./commands/repo-import.ts")).importRepositories(file, options.json === true),
    );
}

function addAuthCommands(root: Command): void {
  const auth = root.command("auth").description("sign in to a running service (SVC_URL)");
  const commands = async () => import("./commands/auth.ts");
  auth
    .command("login")
    .description("sign in by a code that you approve in a browser; the session is kept for other commands")
    .option("--url <address>", "the service; it becomes the default of SVC_URL")
    .option("--admin", "ask for the admin role, which whoever approves the code may give")
    .option("--json", "as JSON")
    .action(async (options: LoginOptions) => (await commands()).login(options));
  auth
    .command("status")
    .description("say who you are there")
    .option("--url <address>", "the service")
    .option("--json", "as JSON")
    .action(async (options: LoginOptions) => (await commands()).status(options));
  auth
    .command("logout")
    .description("end the session, and forget it")
    .option("--url <address>", "the service")
    .option("--revoke-tokens", "end the tokens that were made with it, too")
    .action(async (options: LogoutOptions) => (await commands()).logout(options));
}

function addAppCommands(root: Command): void {
  const app = root
    .command("app")
    .description("code-host apps of a running service, for agent tokens and warming (SVC_URL, SVC_TOKEN)");
  const commands = async () => import("./commands/app.ts");
  app
    .command("list")
    .description("list registered apps")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) => (await commands()).listApps(options.json === true));
  app
    .command("add <app-id>")
    .description("register an app; its key is tried out first")
    .requiredOption("--key <file>", "its private key in PEM form; - reads standard input")
    .option("--default", "make it the default")
    .option("--json", "as JSON")
    .action(async (id: string, options: { key: string; default?: boolean; json?: boolean }) =>
      (await commands()).addApp(id, options),
    );
  app
    .command("check <app>")
    .description("ask the code host whether its key works, what it may do, and where it is installed")
    .option("--json", "as JSON")
    .action(async (which: string, options: { json?: boolean }) =>
      (await commands()).checkApp(which, options.json === true),
    );
  app
    .command("set <app>")
    .description("change an app")
    .option("--key <file>", "a new private key; - reads standard input")
    .option("--default", "make it the default")
    .action(async (which: string, options: { key?: string; default?: boolean }) =>
      (await commands()).setApp(which, options),
    );
  app
    .command("remove <app>")
    .description("forget an app; agent tokens of it open nothing any more")
    .action(async (which: string) => (await commands()).removeApp(which));
}

function addScopeCommands(root: Command): void {
  const scopes = root
    .command("scopes")
    .description("what tokens of a running service may do (SVC_URL, SVC_TOKEN)");
  scopes
    .command("explain [url]")
    .description("say whether a token may make a request, and by which rule; exit code 1 if not")
    .option("--token <token>", "the token in question; '-' reads it from standard input")
    .option("--scopes <list>", "in its place: scopes, such as contents:read")
    .option("--repository <owner/name>", "with --scopes: the repository; given again, another one", oneMore)
    .option("--method <method>", "of the request; default GET")
    .option("--graphql <query>", "in the place of a url; '@FILE' reads it from a file")
    .option("--json", "as JSON")
    .action(async (url: string | undefined, options: ExplainOptions) =>
      (await import("./commands/scopes.ts")).explainScopes(url, options),
    );
}

function addTokenCommands(root: Command): void {
  const token = root.command("token").description("tokens of a running service (SVC_URL, SVC_TOKEN)");
  const commands = async () => import("./commands/token.ts");
  token
    .command("create <owner/name...>")
    .description("create a proxy or agent token and print it; it is not shown again")
    .requiredOption("--scopes <list>", "<resource>:<level>, comma-separated, such as contents:read")
    .requiredOption("--duration <time>", "lifetime, such as 30m, 12h, 7d")
    .option("--agent", "an agent token: it stands for an app's installation, not for you")
    .option("--app <id>", "with --agent: a registered app; default the default app")
    .option("--installation <account>", "with --agent: where the app is installed; default the owner")
    .option("--description <text>", "for lists")
    .option("--session <label>", "your own label for the run that it is for")
    .option("--ip-allow <list>", "addresses and networks that may use it, by comma")
    .option("--rate <requests>", "requests a minute that it may make", wholeNumber)
    .option("--no-check", "do not ask the code host whether you can reach the repositories")
    .option("--json", "the whole answer as JSON")
    .action(async (names: string[], options: CreateOptions) =>
      (await commands()).createToken(names, options),
    );
  token
    .command("list")
    .description("list your tokens")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) => (await commands()).listTokens(options.json === true));
  token
    .command("show <id>")
    .description("show one token")
    .option("--json", "as JSON")
    .action(async (id: string, options: { json?: boolean }) =>
      (await commands()).showToken(id, options.json === true),
    );
  token
    .command("revoke [id]")
    .description("revoke a token at once, by its id or by its value")
    .option("--value", "read the token itself from standard input")
    .action(async (id: string | undefined, options: { value?: boolean }) =>
      (await commands()).revokeToken(id, options.value === true),
    );

  const admin = root
    .command("admin-token")
    .description("administration tokens of a running service (SVC_URL, SVC_TOKEN)");
  const adminCommands = async () => import("./commands/admin-token.ts");
  admin
    .command("create <name>")
    .description("create an administration token and print it; it is not shown again")
    .requiredOption("--duration <time>", "lifetime, such as 12h, 90d")
    .option("--json", "the whole answer as JSON")
    .action(async (name: string, options: { duration: string; json?: boolean }) =>
      (await adminCommands()).createAdminToken(name, options),
    );
  admin
    .command("list")
    .description("list the administration tokens of all admins")
    .option("--json", "as JSON")
    .action(async (options: { json?: boolean }) =>
      (await adminCommands()).listAdminTokens(options.json === true),
    );
  admin
    .command("revoke <id>")
    .description("revoke an administration token at once")
    .option("--revoke-tokens", "end the tokens that were made with it, too")
    .action(async (id: string, options: { revokeTokens?: boolean }) =>
      (await adminCommands()).revokeAdminToken(id, options.revokeTokens === true),
    );
}

/** Takes an option that may be given several times, or several values of it by comma. */
function oneMore(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(",")];
}

function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("Expected a whole number.");
  return Number(text);
}

function wholeNumberOr<Word extends string>(word: Word): (text: string) => number | Word {
  return (text) => {
    if (text === word) return word;
    if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError(`Expected a whole number or '${word}'.`);
    return Number(text);
  };
}
