import { html } from "@devplat/web-kit";
import type { Page } from "../common/layout.ts";

export interface CliPageOptions {
  readonly baseUrl: string;
  /** Address of the code host. */
  readonly hostUrl: string;
}

/** Commands to use this service, with its address. */
export function cliPage({ baseUrl, hostUrl }: CliPageOptions): Page {
  const parts: readonly (readonly [title: string, text: string, commands: readonly string[]])[] = [
    [
      "Clone through it",
      "Any git works. Your credential for the code host is sent on, and is not stored.",
      [
        `git clone ${baseUrl}/OWNER/NAME.git`,
        `git config --global url.${baseUrl}/.insteadOf ${hostUrl}/   # for every repository`,
      ],
    ],
    [
      "Sign in on the command line",
      "Shows a code that you approve in a browser. The session is kept in a file of your own.",
      [`svc auth login --url ${baseUrl}`, "svc auth status"],
    ],
    [
      "Let git get tokens by itself",
      "Each is good for one repository, and for an hour.",
      [
        `git config --global credential.${baseUrl}.helper '!svc git-credential'`,
        `git config --global credential.${baseUrl}.useHttpPath true`,
      ],
    ],
    [
      "Make a token for a job",
      "It opens what it names, and ends by itself.",
      ["svc token create OWNER/NAME --scopes contents:read --duration 8h", "svc token list"],
    ],
  ];
  return {
    title: "Command line",
    lead: html`How to use this service from a terminal. <code>svc --help</code> has the rest.`,
    content: html`${parts.map(
      ([title, text, commands], index) =>
        html`<section class="card stack" aria-labelledby="part-${index}">
          <h2 id="part-${index}">${title}</h2>
          <p>${text}</p>
          <pre class="code" tabindex="0"><code>${commands.join("\n")}</code></pre>
        </section>`,
    )}`,
  };
}
