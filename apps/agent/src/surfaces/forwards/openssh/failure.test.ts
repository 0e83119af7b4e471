import assert from "node:assert/strict";
import { it } from "node:test";
import { failureOf, type FailureClass } from "./failure.ts";

const CASES: readonly (readonly [FailureClass, string])[] = [
  ["dns", "ssh: Could not resolve hostname no.example: Name or service not known"],
  ["refused", "ssh: connect to host 127.0.0.1 port 1: Connection refused"],
  ["unreachable", "ssh: connect to host 10.0.0.1 port 22: No route to host"],
  ["unreachable", "ssh: connect to host 10.0.0.1 port 22: Network is unreachable"],
  ["unreachable", "Connection to 127.0.0.1 closed by remote host."],
  ["timeout", "ssh: connect to host 10.0.0.1 port 22: Connection timed out"],
  ["timeout", "Connection timed out during banner exchange"],
  ["timeout", "Timeout, server 127.0.0.1 not responding."],
  [
    "handshake",
    "kex_exchange_identification: Connection closed by remote host\r\nConnection closed by 127.0.0.1 port 22",
  ],
  [
    "handshake",
    "Unable to negotiate with 127.0.0.1 port 22: no matching key exchange method found. Their offer: x",
  ],
  ["authentication", "me@127.0.0.1: Permission denied (publickey)."],
  [
    "authentication",
    "Received disconnect from 127.0.0.1 port 22:2: Too many authentication failures\nDisconnected from 127.0.0.1",
  ],
  [
    "host-key",
    "No ED25519 host key is known for dev and you have requested strict checking.\nHost key verification failed.",
  ],
  [
    "local",
    "/run/x.conf: line 3: Bad configuration option: foo\n/run/x.conf: terminating, 1 bad configuration options",
  ],
  // In a chain, the hop that failed is the reason, not what the last ssh says about it.
  [
    "authentication",
    "me@jump: Permission denied (publickey).\nkex_exchange_identification: Connection closed by remote host",
  ],
  [
    "refused",
    "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\nConnection closed by UNKNOWN port 65535",
  ],
  [
    "forwarding-denied",
    "channel 0: open failed: administratively prohibited: open failed\nstdio forwarding failed\nConnection closed by UNKNOWN port 65535",
  ],
  // A banner comes before the reason.
  ["authentication", "Host key verification failed.\nBanner\nme@127.0.0.1: Permission denied (publickey)."],
];

for (const [name, stderr] of CASES) {
  it(`is ${name}: ${stderr.split("\n")[0]?.slice(0, 50)}`, () => {
    assert.equal(failureOf(stderr, "local").class, name);
  });
}

it("a message without a reason gets the given class, and is short and harmless", () => {
  const failure = failureOf(`one\n\u001b]0;title\u0007 \u009b31m two \u202e${"x".repeat(1000)}`, "handshake");
  assert.equal(failure.class, "handshake");
  assert.doesNotMatch(failure.message, /[\p{Cc}\p{Cf}]/u);
  assert.ok(failure.message.length < 310);
  assert.deepEqual(failureOf("", "unreachable"), {
    class: "unreachable",
    message: "ssh ended without a message",
  });
});
