import type { Identity } from "../../identity/principal.ts";
import { html, type Html } from "@devplat/web-kit";
import type { DeviceRequest } from "../../identity/login/device-flow.ts";
import { textField } from "../common/form.ts";
import { formatAgo } from "../common/format.ts";
import { factList } from "../common/card.ts";
import type { Page } from "../common/layout.ts";

export interface DevicePageOptions {
  readonly identity: Identity;
  readonly now: number;
  readonly state:
    | { readonly kind: "ask"; readonly typed: string; readonly fault: string | undefined }
    | { readonly kind: "confirm"; readonly request: DeviceRequest }
    | { readonly kind: "decided"; readonly approved: boolean; readonly clientId: string };
}

/** Where a person approves a program without a browser (RFC 8628 section 3.3). */
export function devicePage(options: DevicePageOptions): Page {
  const { state } = options;
  const content =
    state.kind === "ask"
      ? ask(state)
      : state.kind === "confirm"
        ? confirm(state.request, options)
        : decided(state);
  return { title: "Connect a device", narrow: true, content };
}

function ask({ typed, fault }: { readonly typed: string; readonly fault: string | undefined }): Html {
  return html`<div class="card stack">
    <h1>Connect a device</h1>
    <p class="muted">Type the code that the program shows.</p>
    <form class="stack" method="get" action="/auth/device">
      ${textField({
        id: "user-code",
        name: "user_code",
        label: "Code",
        placeholder: "XXXX-XXXX",
        required: true,
        autofocus: true,
        form: { values: { user_code: typed }, faults: fault === undefined ? {} : { user_code: fault } },
      })}
      <div class="form-actions"><button class="primary">Continue</button></div>
    </form>
  </div>`;
}

function confirm(request: DeviceRequest, { identity, now }: DevicePageOptions): Html {
  return html`<div class="card stack">
    <h1>Connect ${request.clientId}?</h1>
    <p>
      The program <strong>${request.clientId}</strong> wants to act here as
      <strong>${identity.login}</strong>, for 30 days, or until you end its session, with which its tokens
      end: make proxy tokens for any repository that you can reach, see yours, and revoke them. It cannot open
      these pages, approve other programs, end your sessions or disconnect your account.
    </p>
    ${factList([
      ["Code", html`<span class="mono">${request.userCode}</span>`],
      ["Asked from", html`<span class="mono">${request.address === "" ? "unknown" : request.address}</span>`],
      ["Asked", formatAgo(request.at, now)],
    ])}
    <p class="banner warn">
      Approve only if you started this yourself, just now, and your program shows this very code. Somebody who
      sent you here wants into your account.
    </p>
    <form class="stack" method="post" action="/auth/device">
      <input type="hidden" name="user_code" value="${request.userCode}" />
      ${
        identity.role === "admin"
          ? html`<label class="check">
              <input type="checkbox" name="role" value="admin" />
              <span
                >With my admin rights${request.wantsAdmin ? " (the program asks for them)" : ""}: everything
                that the administration API can do, administration tokens and all</span
              >
            </label>`
          : ""
      }
      <div class="form-actions">
        <button class="primary" name="decision" value="approve">Approve</button>
        <button name="decision" value="deny">Decline</button>
      </div>
    </form>
  </div>`;
}

function decided({ approved, clientId }: { readonly approved: boolean; readonly clientId: string }): Html {
  return html`<div class="card stack">
    <h1>${approved ? "Connected" : "Declined"}</h1>
    <p role="status">
      ${
        approved
          ? `${clientId} is signed in. You can close this page, and go back to the program.`
          : `${clientId} gets nothing. You can close this page.`
      }
    </p>
    <p><a href="/ui">Your sessions</a></p>
  </div>`;
}
