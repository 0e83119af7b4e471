import { join } from "node:path";
import type { Browser, Page } from "@devplat/testkit";
import { MemoryRemotes, remoteView } from "../../apps/agent/src/surfaces/forwards/memory-remotes.test-kit.ts";
import { signedIn } from "../../apps/agent/src/surfaces/web/memory-view.test-kit.ts";
import { startTestServer } from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import {
  identityView,
  MemorySshAgent,
  sshAgentStatus,
} from "../../apps/agent/src/surfaces/ssh-agent/memory-ssh-agent.test-kit.ts";

/** Sizes of pictures, in CSS pixels. */
const DESK = { width: 960, height: 600 };
const PHONE = { width: 390, height: 700 };

const HOST = "build.example.com";
/** As long as the real ones, and the same in every run. */
const KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIE1vHkqyZwYB2bXr0sQxVn7cLw5tJpD8uKfA3gRzNh6e";
const FINGERPRINT = "SHA256:C+rt1wMY2qdwXhmB9+8+50HqImJJ6I/3XA7Dry5RD1g";
const HOST_KEY = { type: "ssh-ed25519", fingerprint: FINGERPRINT, key: `ssh-ed25519 ${KEY}` };
const { time } = signedIn;

function remotes(): MemoryRemotes {
  const jump = {
    host: "jump.example.com:22",
    ...HOST_KEY,
    fingerprint: "SHA256:dQ9oZb3m7T/fKx2vLw8YpRc1uNs5HgEj4aUi0WtXy6k",
  };
  const lent = {
    created_at: "2026-11-21T09:02:00.000Z",
    expires_at: "2026-11-21T09:17:00.000Z",
    last_used_at: "2026-11-21T09:04:00.000Z",
    handouts: 2,
  };
  const common = { since: time, host_key: HOST_KEY };
  return new MemoryRemotes([
    remoteView(HOST, {
      ...common,
      user: "ada",
      proxy_jump: "jump.example.com",
      hop_keys: [jump],
      tokens: { lent: [lent], added_policies: [], problem: null, asking: false },
    }),
    remoteView("gpu", {
      ...common,
      state: "reconnecting",
      proxy_jump: "jump.example.com",
      error: {
        class: "timeout",
        message: "Timeout, server gpu not responding.",
        advice: "Check the address, the network and the firewall. It is tried again by itself.",
      },
    }),
    remoteView("old-laptop", { ...common, enabled: false, state: "disabled" }),
  ]);
}

function sshAgent(): MemorySshAgent {
  const status = sshAgentStatus({
    sources: [
      {
        name: "enrolments",
        source: "enrolments",
        error: null,
        identities: [
          identityView("ssh/work", {
            fingerprint: "SHA256:7hQzYk2RrTnW5bVx0LcJf8sMpDuEa3GiKo6ZtNvBq1w",
            state: "unlocked",
            unlocked_until: "2026-11-21T21:05:00.000Z",
            signatures: 3,
            last_use: {
              at: "2026-11-21T09:01:00.000Z",
              destination: HOST,
              forwarded: false,
              program: "/usr/bin/ssh",
            },
          }),
        ],
      },
      {
        name: "prod",
        source: "ca",
        error: null,
        identities: [
          identityView("ada (developer)", {
            type: "ssh-ed25519-cert-v01@openssh.com",
            fingerprint: "SHA256:Xe4JmP9wUoS1lCgZy7BvKd0TnHi5QrFa8xEb2MuLt3c",
            certificate_expires_at: "2026-11-21T09:19:00.000Z",
            hosts: ["*.prod.example.com"],
          }),
        ],
      },
    ],
  });
  return new MemorySshAgent(status);
}

/** Takes the pictures of the pages of remotes and of the SSH agent. @param folder of the pictures */
export async function takeSshPictures(browser: Browser, folder: string): Promise<void> {
  const memory = remotes();
  await using server = await startTestServer({ remotes: memory, sshAgent: sshAgent() });
  const page = await browser.newPage({ viewport: DESK });
  const open = (path: string): Promise<unknown> => page.goto(`${server.url}/ui/${path}`);
  const take = async (file: string): Promise<void> => {
    await page.screenshot({ path: join(folder, file) });
    process.stdout.write(`${file}\n`);
  };

  await open("remotes/");
  await page.setViewportSize({ width: 1160, height: 640 });
  await take("agent-remotes.png");
  await open("agent/");
  await page.setViewportSize({ width: 1160, height: 700 });
  await take("ssh-agent.png");
  await open(`remotes/${HOST}/`);
  await page.setViewportSize({ ...DESK, height: 1100 });
  await take("ssh-remote.png");

  memory.offered = [{ host: "db.example.com:22", ...HOST_KEY, known: true, pinned: undefined }];
  await page.setViewportSize({ ...DESK, height: 640 });
  await askForKey(page, open);
  await take("ssh-host-key.png");

  const { tokens } = memory.get(HOST);
  memory.change(HOST, { ask: "first", tokens: { ...tokens, lent: [], asking: true } });
  await page.setViewportSize(PHONE);
  await open(`remotes/${HOST}/`);
  await take("ssh-consent-phone.png");
  await page.close();
}

/** Sends the form of a new remote, up to the question for its key. */
async function askForKey(page: Page, open: (path: string) => Promise<unknown>): Promise<void> {
  await open("remotes/?add");
  await page.getByLabel("Host", { exact: true }).fill("db.example.com");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("heading", { name: "Is this the key" }).waitFor();
}
